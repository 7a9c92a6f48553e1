import { Injectable } from '@nestjs/common';
import { hash, verify } from '@node-rs/argon2';
import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { Pool } from 'pg';
import { RejectedError } from '#platform/kernel/errors.js';
import type { Issue } from '#platform/kernel/issues.js';
import { normalizePassword } from '#platform/kernel/text.js';
import { findPasswordIssue, type CommonPasswords } from './password.js';
import { StoreProfiles } from './store-profiles.service.js';
import { listStoreIds } from './user-audit.service.js';

/** Hashes a password by Argon2id, in the form that every keyboard's spelling of it has. */
export function hashPassword(password: string): Promise<string> {
  return hash(normalizePassword(password));
}

/** For so many days a generated password works. */
export const FIRST_PASSWORD_DAYS = 7;

/** The time at which a password ends that its user has to change. @param isFirst false: it is the user's own */
export function findPasswordEnd(isFirst: boolean): (() => string) | null {
  return isFirst ? () => `now() + interval '${FIRST_PASSWORD_DAYS} days'` : null;
}

/** Generates a password for somebody who is to change it. */
export function generatePassword(): string {
  return randomBytes(12).toString('base64url');
}

/**
 * Lists the most common passwords of several leaks, in lower case: 13,800 of them have ten characters or more. The first
 * package's own module would keep 24 MB in memory.
 */
export const COMMON_PASSWORDS = [
  '@zxcvbn-ts/language-common/src/passwords.json',
  'popular-passwords/data.json',
];

/** Somebody who gets a password. @property userId of an existing user @property accountId a store that they join */
export type NewPasswordOwner = { email: string; name: string; userId?: number; accountId?: number };

/** Checks passwords by Argon2id, and whether new ones are good enough. */
@Injectable()
export class Passwords {
  /** Matches no password, so that an unknown user takes as long as a known one. */
  private readonly decoyHash = hash(randomBytes(16).toString('base64url'));

  constructor(
    private readonly pool: Pool,
    private readonly profiles: StoreProfiles,
  ) {}

  /**
   * Takes the same time whether there is such a user or not.
   * @param storedHash undefined: there is none
   */
  async matches(storedHash: string | undefined, password: string): Promise<boolean> {
    const isRight = await verify(storedHash ?? (await this.decoyHash), normalizePassword(password));
    return isRight && storedHash !== undefined;
  }

  /** @throws RejectedError */
  async assertAcceptable(password: string, owner: NewPasswordOwner): Promise<void> {
    const issue = await this.findIssue(password, owner);
    if (issue) throw new RejectedError({ password: [issue] });
  }

  /** @returns why a new password is refused */
  async findIssue(
    password: string,
    { email, name, userId, accountId }: NewPasswordOwner,
  ): Promise<Issue | undefined> {
    const [common, ids] = await Promise.all([
      readCommonPasswords(),
      listStoreIds(this.pool, userId ?? null),
    ]);
    const stores = await this.profiles.findProfiles(
      accountId === undefined ? ids : [...ids, accountId],
    );
    return findPasswordIssue(
      password,
      { email, name, stores: stores.map((store) => store.name) },
      common,
    );
  }
}

/**
 * Reads the lists as text and searches them: a set of their 90,000 words would take 30 ms to build, and passwords are
 * set rarely.
 */
async function readCommonPasswords(): Promise<CommonPasswords> {
  const { resolve } = createRequire(import.meta.url);
  const texts = await Promise.all(COMMON_PASSWORDS.map((path) => readFile(resolve(path), 'utf8')));
  return {
    has: (password) => texts.some((text) => text.includes(JSON.stringify(password))),
  };
}
