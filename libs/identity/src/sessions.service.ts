import { Injectable } from '@nestjs/common';
import { createHmac, randomBytes } from 'node:crypto';
import { Pool } from 'pg';
import type { EntityManager } from 'typeorm';
import { query } from '#database/connection.js';
import { hashToken } from './token.js';

export const SESSION_COOKIE = 'inkpad';
export const SESSION_SECONDS = 30 * 24 * 60 * 60;
const TOKEN_BYTES = 32;

/** Matches sessions that have not expired. */
const ACTIVE = `s.expires_at > now() and s.seen_at > now() - interval '12 hours'`;

const FIND = {
  name: 'sessions_find',
  text: `
    with session as (
      select s.id, s.user_id, u.name, u.email, s.seen_at < now() - interval '1 minute' as stale
      from sessions s join users u on u.id = s.user_id
      where s.sha256 = $1 and s.awaits_code = $2 and ${ACTIVE} and u.removed_at is null
    ), seen as (
      update sessions set seen_at = now() where id = (select id from session where stale)
    )
    select id, user_id, name, email from session`,
};

/** A user who is signed in with a browser. */
export type SignedInUser = {
  userId: number;
  sessionId: number;
  /** For the hidden field `_csrf` of every form. */
  csrfToken: string;
  name: string;
  email: string;
};

type SessionRow = { id: number; user_id: number; name: string; email: string };

/**
 * Sessions of people in front of a browser. Only the SHA-256 of a session's token is stored, and each page asks the
 * database, so that a session that is ended is ended everywhere at once.
 */
@Injectable()
export class Sessions {
  constructor(private readonly pool: Pool) {}

  /**
   * @param token from the cookie
   * @param awaitsCode finds the sessions of those who have still to enter the code of their second factor
   * @param manager within a transaction, which must not wait for a second connection
   */
  async find(
    token: string,
    awaitsCode = false,
    manager?: EntityManager,
  ): Promise<SignedInUser | undefined> {
    const values = [hashToken(token), awaitsCode];
    const [row]: SessionRow[] = manager
      ? await manager.query(FIND.text, values)
      : await query<SessionRow>(this.pool, { ...FIND, values });
    return (
      row && {
        userId: row.user_id,
        sessionId: row.id,
        csrfToken: createCsrfToken(token),
        name: row.name,
        email: row.email,
      }
    );
  }

  /** Begins a session, within the transaction of the sign-in. @returns the token for the cookie */
  async begin(
    manager: EntityManager,
    userId: number,
    { awaitsCode }: { awaitsCode: boolean },
  ): Promise<string> {
    const token = randomBytes(TOKEN_BYTES).toString('base64url');
    await manager.query(`delete from sessions s where user_id = $1 and not (${ACTIVE})`, [userId]);
    await manager.query(
      `insert into sessions (user_id, sha256, awaits_code, created_at, seen_at, expires_at)
       values ($1, $2, $3, now(), now(), now() + make_interval(secs => $4))`,
      [userId, hashToken(token), awaitsCode, awaitsCode ? 10 * 60 : SESSION_SECONDS],
    );
    return token;
  }

  /**
   * Replaces the token of a session (OWASP ASVS 5.0, 7.2.4): a copy of the former one is of no use any more.
   * @returns the token for the cookie, and the session with the token for its forms
   */
  async renew(signedIn: SignedInUser): Promise<{ token: string; signedIn: SignedInUser }> {
    const token = randomBytes(TOKEN_BYTES).toString('base64url');
    await query(this.pool, {
      name: 'sessions_renew',
      text: 'update sessions set sha256 = $2 where id = $1',
      values: [signedIn.sessionId, hashToken(token)],
    });
    return { token, signedIn: { ...signedIn, csrfToken: createCsrfToken(token) } };
  }

  async end(manager: EntityManager, sessionId: number): Promise<void> {
    await manager.query('delete from sessions where id = $1', [sessionId]);
  }

  async endByToken(manager: EntityManager, token: string): Promise<void> {
    await manager.query('delete from sessions where sha256 = $1', [hashToken(token)]);
  }

  /** @param except a session that stays @returns how many there were */
  async endAll(manager: EntityManager, userId: number, except = 0): Promise<number> {
    const [, count]: [unknown, number] = await manager.query(
      'delete from sessions where user_id = $1 and id <> $2',
      [userId, except],
    );
    return count;
  }

  /** Counts the user's other sessions. */
  async countOthers({ userId, sessionId }: SignedInUser): Promise<number> {
    const [row] = await query<{ count: number }>(this.pool, {
      name: 'sessions_count',
      text: `select count(*)::int as count from sessions s
             where user_id = $1 and id <> $2 and not awaits_code and ${ACTIVE}`,
      values: [userId, sessionId],
    });
    return row?.count ?? 0;
  }
}

/** Creates the token from that of the session: only the browser with the cookie knows it, so it need not be stored. */
function createCsrfToken(token: string): string {
  return createHmac('sha256', token).update('csrf').digest('base64url');
}
