import { Injectable } from '@nestjs/common';
import { createHmac } from 'node:crypto';
import { Pool } from 'pg';
import type { EntityManager } from 'typeorm';
import { Config } from '#configuration/config.js';
import { createSecret } from '#platform/kernel/randomness.js';
import { query, type Queryable } from '#platform/database/connection.js';
import { parseBrowser, type Browser } from './browser.js';
import { hashToken } from './token.js';

export const SESSION_COOKIE = 'inkpad';
export const SESSION_SECONDS = 30 * 24 * 60 * 60;
/** More than anybody recognizes. */
const MAX_LISTED = 50;

/** For so long after a company has said who somebody is, no password is asked for: its people may have none. */
const COMPANY_MINUTES = 10;

/** Matches sessions that have not expired. */
const ACTIVE = 'session_ends_at(s) > now()';
/** Entries of a counter that wait longer have to be confirmed. */
const ENDED_DAYS = 30;

/** Matches users of a store that requires a second factor. */
const IN_STORE_WITH_CODES = `exists (select from memberships m
  join second_factor_stores r on r.account_id = m.account_id where m.user_id = u.id)`;

/** Matches users who have set up a second factor. */
const HAS_CODES = `exists (select from second_factors f
  where f.user_id = u.id and f.confirmed_at is not null)`;

const FIND = {
  name: 'sessions_find',
  text: `
    with session as (
      select s.id, s.user_id, s.counter_account_id, u.name, u.email, s.by_company,
        not (s.by_company and s.created_at > now() - interval '${COMPANY_MINUTES} minutes') as asks_password,
        case when s.counter_account_id is not null then null
          when u.password_expires_at is not null and not s.by_company then 'password'
          when s.second_factor is null and ($3 or ${IN_STORE_WITH_CODES}) then 'second_factor'
        end as task,
        ${HAS_CODES} as has_codes,
        s.seen_at < now() - interval '1 minute' as stale
      from sessions s join users u on u.id = s.user_id
      where s.sha256 = $1 and s.awaits_code = $2 and ${ACTIVE} and u.removed_at is null
    ), seen as (
      update sessions set seen_at = now() where id = (select id from session where stale)
    )
    select id as "sessionId", user_id as "userId", counter_account_id as "counterAccountId", name, email,
      by_company as "isByCompany", asks_password as "asksPassword", task, has_codes as "hasCodes"
    from session`,
};

const FIND_PRESENT = {
  name: 'sessions_find_present',
  text: `
    select exists (
        select from sessions s
        where s.id = m.session_id and s.user_id = $1 and m.at between s.created_at and session_ends_at(s)
          and (s.id = $4 or session_ends_at(s) <= now())
      ) or exists (
        select from ended_sessions e
        where e.session_id = m.session_id and e.user_id = $1 and m.at between e.created_at and e.ended_at
      ) as "isPresent"
    from unnest($2::bigint[], $3::timestamptz[]) with ordinality m (session_id, at, number) order by m.number`,
};

/** A user who is signed in with a browser. */
export type SignedInUser = {
  userId: number;
  sessionId: number;
  /** For the hidden field `_csrf` of every form. */
  csrfToken: string;
  name: string;
  email: string;
  /** The store whose counter is all that the session reaches (ADR-0139); null: everything that the user may. */
  counterAccountId: number | null;
  isByCompany: boolean;
  /** Whether steps that could give somebody lasting access ask for the password. */
  asksPassword: boolean;
  /** What the user has to do before anything else: set their own password, or set up the codes. */
  task: 'password' | 'second_factor' | null;
};

/** Where the second factor of a session came from: the user's codes, or the word of a company. */
export type SecondFactorSource = 'code' | 'company';

/** Something that was done with a session, by the browser's account of it. */
export type SessionMoment = { sessionId: number; at: string };

/** A session in the user's list. @property browser null: unknown */
export type ListedSession = {
  id: number;
  browser: Browser | null;
  createdAt: Date;
  seenAt: Date;
};

type SessionRow = Omit<SignedInUser, 'csrfToken'> & { hasCodes: boolean };

/**
 * Sessions of people in front of a browser. Only the SHA-256 of a session's token is stored, and each page asks the
 * database, so that a session that is ended is ended everywhere at once (ADR-0049).
 */
@Injectable()
export class Sessions {
  constructor(
    private readonly pool: Pool,
    private readonly config: Config,
  ) {}

  /**
   * @param token from the cookie
   * @param awaitsCode finds the sessions of those who have still to enter the code of their second factor
   * @param by a transaction, which must not wait for a second connection
   */
  async find(
    token: string,
    awaitsCode = false,
    by: Queryable = this.pool,
  ): Promise<SignedInUser | undefined> {
    const values = [hashToken(token), awaitsCode, this.config.requiresSecondFactor];
    const [row] = await query<SessionRow>(by, { ...FIND, values });
    if (!row) return undefined;
    const { hasCodes, ...session } = row;
    // A session has to begin with a code once its user has codes. This one began before.
    if (!awaitsCode && session.task === 'second_factor' && hasCodes) return undefined;
    return { ...session, csrfToken: createCsrfToken(token, session.userId) };
  }

  /**
   * Begins a session, within the transaction of the sign-in.
   * @returns the token for the cookie
   */
  async begin(
    manager: EntityManager,
    userId: number,
    {
      awaitsCode,
      isByCompany = false,
      secondFactor = null,
      userAgent,
    }: {
      awaitsCode: boolean;
      isByCompany?: boolean;
      secondFactor?: SecondFactorSource | null;
      userAgent?: string | undefined;
    },
  ): Promise<string> {
    const token = createSecret();
    const browser = parseBrowser(userAgent);
    await query(manager, `delete from sessions s where user_id = $1 and not (${ACTIVE})`, [userId]);
    await query(manager, {
      text: `delete from ended_sessions where user_id = $1 and ended_at < now() - make_interval(days => ${ENDED_DAYS})`,
      values: [userId],
    });
    await query(manager, {
      text: `insert into sessions
         (user_id, sha256, awaits_code, by_company, second_factor, browser, system,
          created_at, seen_at, expires_at)
       values ($1, $2, $3, $4, $5, $6, $7, now(), now(), now() + make_interval(secs => $8))`,
      values: [
        userId,
        hashToken(token),
        awaitsCode,
        isByCompany,
        secondFactor,
        browser?.name ?? null,
        browser?.system ?? null,
        awaitsCode ? 10 * 60 : SESSION_SECONDS,
      ],
    });
    return token;
  }

  /**
   * Replaces the token of a session (OWASP ASVS 5.0, 7.2.4): a copy of the former one is of no use any more.
   * @param hasEnteredCode the user has just set up the codes
   * @returns the token for the cookie, and the session with the token for its forms
   */
  async renew(
    signedIn: SignedInUser,
    hasEnteredCode = false,
  ): Promise<{ token: string; signedIn: SignedInUser }> {
    const token = createSecret();
    await query(this.pool, {
      name: 'sessions_renew',
      text: `update sessions set sha256 = $2,
               second_factor = coalesce(second_factor, case when $3 then 'code' end)
             where id = $1`,
      values: [signedIn.sessionId, hashToken(token), hasEnteredCode],
    });
    return { token, signedIn: { ...signedIn, csrfToken: createCsrfToken(token, signedIn.userId) } };
  }

  /**
   * Gives a session to another user, who then reaches only the counter of a store. Sent twice, it stays one session: the
   * token of the second request replaces that of the first.
   * @returns the token for the cookie, and whether an earlier request has given it to them; undefined: it has ended
   */
  async handOver(
    manager: EntityManager,
    { sessionId, userId: formerUserId }: Pick<SignedInUser, 'sessionId' | 'userId'>,
    { userId, accountId }: { userId: number; accountId: number },
  ): Promise<{ token: string; isRepeated: boolean } | undefined> {
    const token = createSecret();
    const [session] = await query<{ user_id: number; counter_account_id: number | null }>(manager, {
      text: 'select user_id, counter_account_id from sessions where id = $1 for update',
      values: [sessionId],
    });
    if (!session) return undefined;
    const isRepeated = session.user_id === userId && session.counter_account_id === accountId;
    if (!isRepeated && session.user_id !== formerUserId) return undefined;
    await query(manager, {
      text: `update sessions set user_id = $2, counter_account_id = $3, sha256 = $4, by_company = false,
         second_factor = null, created_at = now(), seen_at = now(), expires_at = now() + make_interval(secs => $5)
       where id = $1`,
      values: [sessionId, userId, accountId, hashToken(token), SESSION_SECONDS],
    });
    return { token, isRepeated };
  }

  /** Tells whether a user needs a second factor and has set it up. Who has not is led to it after the sign-in. */
  async needsCode(manager: EntityManager, userId: number): Promise<boolean> {
    const users = await query(manager, {
      text: `select from users u where u.id = $1 and ${HAS_CODES} and ($2 or ${IN_STORE_WITH_CODES})`,
      values: [userId, this.config.requiresSecondFactor],
    });
    return users.length > 0;
  }

  async end(manager: EntityManager, sessionId: number): Promise<void> {
    await query(manager, 'delete from sessions where id = $1', [sessionId]);
  }

  /** Ends a session that a link begins. @returns undefined: there is none, or the link was used */
  async endLink(manager: EntityManager, token: string): Promise<{ hasCodes: boolean } | undefined> {
    const [link] = await query<{ hasCodes: boolean }>(manager, {
      text: `with ended as (
           delete from sessions s where sha256 = $1 and by_link and ${ACTIVE} returning user_id
         )
         select ${HAS_CODES} as "hasCodes" from ended join users u on u.id = ended.user_id`,
      values: [hashToken(token)],
    });
    return link;
  }

  async endByToken(manager: EntityManager, token: string): Promise<void> {
    await query(manager, 'delete from sessions where sha256 = $1', [hashToken(token)]);
  }

  /** @param except a session that stays @returns how many there were */
  async endAll(manager: EntityManager, userId: number, except = 0): Promise<number> {
    const ended = await query(manager, {
      text: 'delete from sessions where user_id = $1 and id <> $2 returning id',
      values: [userId, except],
    });
    return ended.length;
  }

  /** Ends one of the user's sessions. @returns false: it has ended already, or is not theirs */
  async endOne(manager: EntityManager, userId: number, sessionId: number): Promise<boolean> {
    const ended = await query(manager, {
      text: 'delete from sessions where id = $1 and user_id = $2 returning id',
      values: [sessionId, userId],
    });
    return ended.length > 0;
  }

  /**
   * Tells for each moment whether the user was signed in with the session, which may have ended or changed hands since. It
   * does not count if another session of theirs goes on: the browser has lost its cookie, nobody knows when.
   */
  async findPresent(
    { userId, sessionId }: Pick<SignedInUser, 'userId' | 'sessionId'>,
    moments: readonly SessionMoment[],
  ): Promise<boolean[]> {
    const rows = await query<{ isPresent: boolean }>(this.pool, {
      ...FIND_PRESENT,
      values: [
        userId,
        moments.map((moment) => moment.sessionId),
        moments.map(({ at }) => at),
        sessionId,
      ],
    });
    return rows.map(({ isPresent }) => isPresent);
  }

  /** Lists the user's sessions, the current one first, then those that were used last. */
  list({ userId, sessionId }: SignedInUser): Promise<ListedSession[]> {
    return query<ListedSession>(this.pool, {
      name: 'sessions_list',
      text: `select id, created_at as "createdAt", seen_at as "seenAt",
               case when browser is not null then json_build_object('name', browser, 'system', system) end as browser
             from sessions s where user_id = $1 and not awaits_code and ${ACTIVE}
             order by id = $2 desc, seen_at desc, id desc limit ${MAX_LISTED}`,
      values: [userId, sessionId],
    });
  }

  /** Finds the time zone for times that a user sees outside of a store: that of the store they joined first. */
  async findTimeZone(userId: number): Promise<string> {
    const [store] = await query<{ time_zone: string }>(this.pool, {
      name: 'sessions_time_zone',
      text: `select a.time_zone from memberships m join accounts a on a.id = m.account_id
             where m.user_id = $1 order by m.created_at, a.id limit 1`,
      values: [userId],
    });
    return store?.time_zone ?? 'UTC';
  }
}

/**
 * Creates the token from that of the session: only the browser with the cookie knows it, so it need not be stored. It ends
 * with the id of the user, by which a form whose session has ended still says whose it is.
 */
function createCsrfToken(token: string, userId: number): string {
  return `${createHmac('sha256', token).update('csrf').digest('base64url')}.${userId}`;
}

/** Finds out for whom the page of a form was made. It proves nothing: anybody can write it. */
export function parseCsrfUser(csrfToken: string): number | undefined {
  const [, id] = /^[\w-]{43}[.](\d{1,15})$/.exec(csrfToken) ?? [];
  return id === undefined ? undefined : Number(id);
}
