import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import type { EntityManager } from 'typeorm';
import type { RequestSource } from '#platform/kernel/aggregate.js';
import { findEmailKey } from '#platform/kernel/email-address.js';
import { createSecret } from '#platform/kernel/randomness.js';
import { query } from '#platform/database/connection.js';
import {
  AuditedWrites,
  type AuditedTransaction,
  type AuditedWriter,
} from '#platform/event-store/commands/audited-writes.service.js';
import {
  isWritten,
  RepeatedAudits,
} from '#platform/event-store/commands/repeated-audits.service.js';
import { getAddressKey } from '#platform/http/rate-limit.js';
import { Passwords } from './passwords.service.js';
import { parseRecoveryCode, type WrongCodes } from './second-factor.js';
import { SecondFactors } from './second-factors.service.js';
import { Sessions, type SecondFactorSource } from './sessions.service.js';
import {
  hasTooManyFailures,
  MAX_FAILURES,
  SignInFailures,
  type FailureCount,
} from './sign-in-failures.service.js';
import { hashToken } from './token.js';
import { auditUser, createSystemWriter, createUserWriter } from './user-audit.service.js';

const MAX_BROWSERS = 20;

/** The visitor who signs in. @property browser the long-lived cookie @property session the cookie of a session */
export type Visitor = RequestSource & { browser?: string; session?: string; userAgent?: string };

/** @property session for the cookie @property browser for the long-lived one */
export type NewSession = { kind: 'in'; session: string; browser: string };

export type SignInOutcome =
  | NewSession
  /** The password was right. @property session with which the code has to come */
  | { kind: 'code'; session: string }
  | { kind: 'wrong' }
  /** The password was right, but its time to be changed is over. */
  | { kind: 'expired' }
  /** Codes of the app are not taken any more. */
  | { kind: 'locked' }
  | { kind: 'wait'; seconds: number };

/** Notifies a user of wrong codes, within the transaction that has counted them. */
export type NotifyOfWrongCodes = (manager: EntityManager, wrong: WrongCodes) => Promise<void>;

type UserRow = {
  id: number;
  email_key: string;
  password_hash: string;
  second_factor: boolean;
  isExpired: boolean;
  isKnownBrowser: boolean;
};

const FIND = {
  name: 'sign_ins_find',
  text: `
    select u.id, u.email_key, u.password_hash, f.confirmed_at is not null as second_factor,
      coalesce(u.password_expires_at < now(), false) as "isExpired",
      exists (select from known_browsers b where b.user_id = u.id and b.sha256 = $2) as "isKnownBrowser"
    from users u left join second_factors f on f.user_id = u.id
    where u.email_key = $1 and u.removed_at is null`,
};
/** Locks the user, so that a new password or address, which ends all sessions, and a sign-in wait for each other. */
const LOCK_USER = `select email_key, password_hash from users where id = $1 and removed_at is null for share`;

/** Signs users in: by password, by the code of a second factor, or by a company. */
@Injectable()
export class SignIns {
  constructor(
    private readonly pool: Pool,
    private readonly writes: AuditedWrites,
    private readonly passwords: Passwords,
    private readonly factors: SecondFactors,
    private readonly sessions: Sessions,
    private readonly failures: SignInFailures,
    private readonly repeated: RepeatedAudits,
  ) {}

  /** Signs in by password. Takes the same time, with the same result, whether there is such a user or not. */
  async signInWithPassword(
    visitor: Visitor,
    address: string,
    password: string,
  ): Promise<SignInOutcome> {
    const key = findEmailKey(address);
    const browser = hashToken(visitor.browser ?? '');
    const [user] = await query<UserRow>(this.pool, { ...FIND, values: [key ?? null, browser] });
    // Inputs that are no address share one count: the text itself could be the name of another count.
    const subject = key ?? '';
    const failures = await this.failures.count(subject, user?.isKnownBrowser ? browser : null);
    if (hasTooManyFailures(failures)) return { kind: 'wait', seconds: failures.seconds };
    if (!(await this.passwords.matches(user?.password_hash, password)) || !user) {
      await this.recordFailure(visitor, user?.id ?? subject, 'password', failures);
      return { kind: 'wrong' };
    }
    return this.writes.write(createUserWriter(visitor, user.id), async (transaction) => {
      const { manager } = transaction;
      const [current] = await query<Pick<UserRow, 'email_key' | 'password_hash'>>(manager, {
        text: LOCK_USER,
        values: [user.id],
      });
      if (current?.email_key !== user.email_key || current.password_hash !== user.password_hash) {
        return { kind: 'wrong' };
      }
      if (user.isExpired) return { kind: 'expired' };
      if (!user.second_factor) {
        return this.startSession(transaction, visitor, user.id, { method: 'password' }, failures);
      }
      await this.failures.forget(manager, failures);
      const session = await this.sessions.begin(manager, user.id, {
        awaitsCode: true,
        userAgent: visitor.userAgent,
      });
      return { kind: 'code', session };
    });
  }

  /**
   * Signs in by a code. Attempts pause for a while after several wrong codes of the app. A recovery code is always
   * checked: nobody guesses 80 random bits, and people need it when their app does not help.
   *
   * @param visitor with the session that awaits a code; null is the result when it does not any more
   */
  async signInWithCode(
    visitor: Visitor,
    code: string,
    notify: NotifyOfWrongCodes,
  ): Promise<SignInOutcome | null> {
    const pendingSession = await this.sessions.find(visitor.session ?? '', true);
    if (!pendingSession) return null;
    const { userId } = pendingSession;
    const failures =
      parseRecoveryCode(code) === undefined
        ? await this.failures.count(`code of user ${userId}`, null)
        : undefined;
    if (failures && hasTooManyFailures(failures))
      return { kind: 'wait', seconds: failures.seconds };
    const outcome = await this.writes.write(
      createUserWriter(visitor, userId),
      async (transaction) => {
        const { manager } = transaction;
        await query(manager, LOCK_USER, [userId]);
        if (!(await this.sessions.find(visitor.session ?? '', true, manager))) return null;
        const result = await this.factors.consumeCode(manager, userId, code);
        if (!result) return { kind: 'wrong' } as const;
        if (result.kind === 'app' || result.kind === 'recovery') {
          const { isByCompany } = pendingSession;
          const how = { method: result.kind, isByCompany, secondFactor: 'code' } as const;
          return this.startSession(transaction, visitor, userId, how, failures);
        }
        if (result.warning) {
          await notify(manager, result.warning);
          const { failures, isLocked } = result.warning;
          if (isLocked) await auditUser(transaction, userId, 'user.sign_in_paused', { failures });
        }
        return { kind: result.kind } as const;
      },
    );
    if (outcome?.kind === 'wrong' || outcome?.kind === 'locked') {
      await this.recordFailure(visitor, userId, 'code', failures);
    }
    return outcome;
  }

  /**
   * Signs in by the link that `npm start` prints. Whoever reads that may read the database too, so it takes the place of the
   * password.
   * @returns undefined for a link that was used, or is too old
   */
  async signInByLink(
    visitor: Visitor,
    token: string,
  ): Promise<NewSession | { kind: 'code'; session: string } | undefined> {
    const pendingSession = await this.sessions.find(token, true);
    if (!pendingSession) return undefined;
    const { userId } = pendingSession;
    return this.writes.write(createUserWriter(visitor, userId), async (transaction) => {
      const { manager } = transaction;
      await query(manager, LOCK_USER, [userId]);
      const link = await this.sessions.endLink(manager, token);
      if (!link) return undefined;
      if (!link.hasCodes)
        return this.startSession(transaction, visitor, userId, { method: 'link' });
      const { userAgent } = visitor;
      const session = await this.sessions.begin(manager, userId, { awaitsCode: true, userAgent });
      return { kind: 'code', session } as const;
    });
  }

  /** Signs in a user whom an invitation has just created. */
  async signInInvited(visitor: Visitor, userId: number): Promise<NewSession> {
    return this.writes.write(createUserWriter(visitor, userId), (transaction) =>
      this.startSession(transaction, visitor, userId, { method: 'invitation' }),
    );
  }

  async signOut(by: AuditedWriter, { userId, sessionId }: { userId: number; sessionId: number }) {
    await this.writes.write(by, async (transaction) => {
      await this.sessions.end(transaction.manager, sessionId);
      await auditUser(transaction, userId, 'user.signed_out');
    });
  }

  /** Ends another session of the user, and does nothing if there is none with the id. */
  async endSession(by: AuditedWriter, { userId }: { userId: number }, id: number): Promise<void> {
    await this.writes.write(by, async (transaction) => {
      const isEnded = await this.sessions.endOne(transaction.manager, userId, id);
      if (isEnded) await auditUser(transaction, userId, 'user.session_ended');
    });
  }

  /** @returns how many sessions were ended */
  async signOutElsewhere(
    by: AuditedWriter,
    { userId, sessionId }: { userId: number; sessionId: number },
  ): Promise<number> {
    return this.writes.write(by, async (transaction) => {
      const endedCount = await this.sessions.endAll(transaction.manager, userId, sessionId);
      if (endedCount > 0)
        await auditUser(transaction, userId, 'user.sessions_ended', { sessions: endedCount });
      return endedCount;
    });
  }

  /** Remembers the browser, whose failures are counted apart from now on, and forgets the failures so far. */
  async trustBrowser(
    transaction: AuditedTransaction,
    { browser = createSecret() }: Pick<Visitor, 'browser'>,
    userId: number,
  ): Promise<string> {
    await query(transaction.manager, {
      text: `insert into known_browsers (user_id, sha256, seen_at) values ($1, $2, now())
       on conflict (user_id, sha256) do update set seen_at = now()`,
      values: [userId, hashToken(browser)],
    });
    await query(transaction.manager, {
      text: `delete from known_browsers where user_id = $1 and sha256 in (
         select sha256 from known_browsers where user_id = $1 order by seen_at desc offset $2)`,
      values: [userId, MAX_BROWSERS],
    });
    return browser;
  }

  /**
   * Starts a session within the caller's transaction. It is always a new one: others may know the token of an earlier
   * one.
   */
  async startSession(
    transaction: AuditedTransaction,
    visitor: Visitor,
    userId: number,
    {
      method,
      isByCompany = false,
      secondFactor = null,
    }: { method: string; isByCompany?: boolean; secondFactor?: SecondFactorSource | null },
    failures?: FailureCount,
  ): Promise<NewSession> {
    const { manager } = transaction;
    if (failures) await this.failures.forget(manager, failures);
    if (visitor.session !== undefined) await this.sessions.endByToken(manager, visitor.session);
    const session = await this.sessions.begin(manager, userId, {
      awaitsCode: false,
      isByCompany,
      secondFactor,
      userAgent: visitor.userAgent,
    });
    const browser = await this.trustBrowser(transaction, visitor, userId);
    await auditUser(transaction, userId, 'user.signed_in', { method });
    return { kind: 'in', session, browser };
  }

  /**
   * Records a failure. It writes as much about an address that nobody has, so that the time does not reveal it. Entries
   * are counted for all these addresses together, or strangers could create any number. The input is not stored: it may
   * be a password. Writes another entry when attempts are refused for a while.
   * @param who the user, or an address that nobody has
   */
  private async recordFailure(
    visitor: Visitor,
    who: number | string,
    method: 'password' | 'code',
    failures: FailureCount | undefined,
  ): Promise<void> {
    const system = createSystemWriter(visitor);
    const userId = typeof who === 'number' ? who : null;
    await this.writes.write(system, async (transaction) => {
      const audit = (times: number) =>
        auditUser(transaction, userId, 'user.sign_in_failed', { method, times });
      const kind = ['sign-in', method, who, getAddressKey(visitor.ipAddress)];
      const times = await this.repeated.count(transaction, kind);
      if (userId !== null && isWritten(times)) return audit(times);
      const group = userId === null ? 'nobody' : 'somebody';
      const groupTimes = await this.repeated.count(transaction, ['sign-in', method, group]);
      if (userId === null && isWritten(groupTimes)) await audit(groupTimes);
    });
    if (typeof who === 'string' || failures?.count !== MAX_FAILURES) return;
    await this.writes.write(system, (transaction) =>
      auditUser(transaction, who, 'user.sign_in_paused', { failures: failures.count }),
    );
  }
}
