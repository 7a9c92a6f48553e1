import { Injectable } from '@nestjs/common';
import { hash, verify } from '@node-rs/argon2';
import { randomBytes } from 'node:crypto';
import { normalizePassword } from '#kernel/text.js';

/** Hashes a password by Argon2id, in the form that every keyboard's spelling of it has. */
export function hashPassword(password: string): Promise<string> {
  return hash(normalizePassword(password));
}

/** Checks passwords by Argon2id. */
@Injectable()
export class Passwords {
  /** Nobody's. */
  private readonly unknown = hash(randomBytes(16).toString('base64url'));

  /**
   * Takes the same time whether there is such a user or not.
   * @param stored undefined: there is none
   */
  async matches(stored: string | undefined, password: string): Promise<boolean> {
    const right = await verify(stored ?? (await this.unknown), normalizePassword(password));
    return right && stored !== undefined;
  }
}
