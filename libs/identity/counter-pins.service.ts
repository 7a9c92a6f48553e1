import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { RejectedError } from '#platform/kernel/errors.js';
import { query } from '#platform/database/connection.js';
import {
  AuditedWrites,
  type AuditedWriter,
} from '#platform/event-store/commands/audited-writes.service.js';
import { RepeatedAudits } from '#platform/event-store/commands/repeated-audits.service.js';
import { getAddressKey } from '#platform/http/rate-limit.js';
import {
  findPinIssue,
  MAX_ALL_PIN_FAILURES,
  MAX_PIN_FAILURES,
  normalizePin,
} from './counter-pin.js';
import { hashPassword, Passwords } from './passwords.service.js';
import { Sessions, type SignedInUser } from './sessions.service.js';
import type { Visitor } from './sign-ins.service.js';
import { auditUser, createUserWriter } from './user-audit.service.js';

/** A member of a store. @property hasPin whether they can take over its counter */
export type CounterMember = { id: number; name: string; hasPin: boolean };

export type PinState = 'none' | 'set' | 'locked';

export type SwitchOutcome =
  /** @property session for the cookie */
  | { kind: 'in'; session: string }
  | { kind: 'wrong' }
  /** The session of the present user has ended meanwhile. */
  | { kind: 'ended' }
  /** The PIN is not checked any more, or there is none. */
  | { kind: 'locked' };

/** Of a member of the store, who may have left since the page was opened. */
const MEMBER = `from counter_pins p
  join users u on u.id = p.user_id and u.removed_at is null
  join memberships m on m.user_id = u.id and m.account_id = $2
  where p.user_id = $1`;

/** Counts the attempt before the PIN is checked, so that attempts at the same time all count. */
const COUNT = {
  name: 'counter_pins_count',
  text: `update counter_pins c set failures = c.failures + 1, all_failures = c.all_failures + 1
         where c.user_id = (select p.user_id ${MEMBER}) and c.failures < ${MAX_PIN_FAILURES}
           and c.all_failures < ${MAX_ALL_PIN_FAILURES}
         returning c.pin_hash, c.failures, c.all_failures`,
};

type Failures = { failures: number; all_failures: number };

/**
 * Lets the members of a store take turns at its counter, each by a PIN (ADR-0139). A PIN is hashed like a password, and
 * is not checked any more after ten wrong attempts in a row, or fifty in all.
 */
@Injectable()
export class CounterPins {
  constructor(
    private readonly pool: Pool,
    private readonly writes: AuditedWrites,
    private readonly repeatedAudits: RepeatedAudits,
    private readonly passwords: Passwords,
    private readonly sessions: Sessions,
  ) {}

  async findState(userId: number): Promise<PinState> {
    const [pin] = await query<Failures>(this.pool, {
      name: 'counter_pins_state',
      text: 'select failures, all_failures from counter_pins where user_id = $1',
      values: [userId],
    });
    if (!pin) return 'none';
    return isLocked(pin) ? 'locked' : 'set';
  }

  /** Lists the members of a store by name. */
  listMembers(accountId: number): Promise<CounterMember[]> {
    return query<CounterMember>(this.pool, {
      name: 'counter_pins_members',
      text: `select u.id, u.name, p.user_id is not null as "hasPin"
             from memberships m join users u on u.id = m.user_id
             left join counter_pins p on p.user_id = u.id
             where m.account_id = $1 and u.removed_at is null
             order by lower(u.name), u.id limit 200`,
      values: [accountId],
    });
  }

  /** Sets the PIN of a user, in place of the one before. @throws RejectedError */
  async set(by: AuditedWriter, userId: number, input: string): Promise<void> {
    const pin = normalizePin(input);
    const error = findPinIssue(pin);
    if (error !== undefined) throw new RejectedError({ pin: [error] });
    const hash = await hashPassword(pin);
    await this.writes.write(by, async (transaction) => {
      await query(transaction.manager, {
        text: `insert into counter_pins (user_id, pin_hash, created_at) values ($1, $2, now())
         on conflict (user_id) do update set pin_hash = $2, failures = 0, all_failures = 0, created_at = now()`,
        values: [userId, hash],
      });
      await auditUser(transaction, userId, 'user.pin_set');
    });
  }

  async remove(by: AuditedWriter, userId: number): Promise<void> {
    await this.writes.write(by, async (transaction) => {
      const removed = await query(transaction.manager, {
        text: 'delete from counter_pins where user_id = $1 returning user_id',
        values: [userId],
      });
      if (removed.length > 0) await auditUser(transaction, userId, 'user.pin_removed');
    });
  }

  /**
   * Gives the session of the present user to another member, for whom it reaches the counter of the store and nothing
   * else.
   */
  async takeOver(
    visitor: Visitor,
    present: SignedInUser,
    { accountId, userId, pin }: { accountId: number; userId: number; pin: string },
  ): Promise<SwitchOutcome> {
    const [attempt] = await query<{ pin_hash: string } & Failures>(this.pool, {
      ...COUNT,
      values: [userId, accountId],
    });
    if (!attempt) return { kind: 'locked' };
    if (!(await this.passwords.matches(attempt.pin_hash, normalizePin(pin)))) {
      await this.recordFailure(visitor, present, userId, attempt);
      return { kind: 'wrong' };
    }
    return this.writes.write(createUserWriter(visitor, userId), async (transaction) => {
      const { manager } = transaction;
      const [current] = await query<{ pin_hash: string }>(manager, {
        text: `select p.pin_hash ${MEMBER} for update of p`,
        values: [userId, accountId],
      });
      // The PIN was changed, or the member left, since the attempt was counted.
      if (current?.pin_hash !== attempt.pin_hash) return { kind: 'wrong' } as const;
      // This attempt was counted as if it were wrong.
      await query(manager, {
        text: 'update counter_pins set failures = 0, all_failures = all_failures - 1 where user_id = $1',
        values: [userId],
      });
      const session = await this.sessions.handOver(manager, present, { userId, accountId });
      if (!session) return { kind: 'ended' } as const;
      if (!session.isRepeated) {
        await transaction.audit({
          accountIds: [accountId],
          type: 'user.signed_in',
          subject: { user_id: userId, method: 'pin', after_user_id: present.userId },
        });
      }
      return { kind: 'in', session: session.token } as const;
    });
  }

  /** Audits the failure in the name of whoever is at the counter, who may be guessing. */
  private async recordFailure(
    visitor: Visitor,
    present: SignedInUser,
    userId: number,
    attempt: Failures,
  ): Promise<void> {
    const by = createUserWriter(visitor, present.userId);
    const kind = ['counter pin', userId, present.userId, getAddressKey(visitor.ipAddress)];
    await this.repeatedAudits.write(by, kind, (transaction, times) =>
      auditUser(transaction, userId, 'user.sign_in_failed', { method: 'pin', times }),
    );
    if (!isLocked(attempt)) return;
    await this.writes.write(by, (transaction) =>
      auditUser(transaction, userId, 'user.pin_locked', { failures: attempt.failures }),
    );
  }
}

function isLocked({ failures, all_failures: all }: Failures): boolean {
  return failures >= MAX_PIN_FAILURES || all >= MAX_ALL_PIN_FAILURES;
}
