import { Injectable } from '@nestjs/common';
import { hashRaw } from '@node-rs/argon2';
import { randomBytes } from 'node:crypto';
import { Pool } from 'pg';
import type { EntityManager } from 'typeorm';
import { getNow } from '#platform/kernel/clock.js';
import { query } from '#platform/database/connection.js';
import { MasterKeys, type SealedColumn } from '#platform/database/master-keys.js';
import { RepeatedAudits } from '#platform/event-store/commands/repeated-audits.service.js';
import {
  AuditedWrites,
  type AuditedWriter,
} from '#platform/event-store/commands/audited-writes.service.js';
import {
  NOTIFIED_CODE_FAILURES,
  MAX_CODE_FAILURES,
  parseRecoveryCode,
  RECOVERY_BYTES,
  toRecoveryCodes,
  TOTP_SECRET_BYTES,
  findStepOfCode,
  type WrongCodes,
} from './second-factor.js';
import { auditUser } from './user-audit.service.js';

const FIND = {
  name: 'second_factors_find',
  text: `select secret, confirmed_at is not null as confirmed, last_step
         from second_factors where user_id = $1`,
};

const PURPOSE = 'second factors';
const getSealContext = (userId: unknown): string => `second factor of user ${String(userId)}`;

export const SECOND_FACTOR_COLUMN: SealedColumn = {
  name: 'second factors',
  table: 'second_factors',
  column: 'secret',
  id: 'user_id',
  idType: 'bigint',
  purpose: PURPOSE,
  getContext: getSealContext,
};

type FactorRow = { secret: Buffer; confirmed: boolean; last_step: number };

const SALT_BYTES = 16;

/**
 * Counts before the code is looked at, so that attempts at the same time all count. A user who has just got a second
 * factor has no failures.
 */
const ATTEMPT = `
  update second_factors f set code_failures = code_failures + 1
  from users u
  where f.user_id = $1 and u.id = f.user_id and f.confirmed_at is not null
  returning f.secret, f.last_step, f.code_failures, f.recovery_salt, u.name, u.email`;

type AttemptRow = {
  secret: Buffer;
  last_step: number;
  code_failures: number;
  recovery_salt: Buffer | null;
  name: string;
  email: string;
};

/** @property warning set when the user has to be notified */
export type CodeResult =
  | { kind: 'app' }
  | { kind: 'recovery' }
  /** Codes of the app are not taken until a recovery code or a new password. */
  | { kind: 'locked'; warning?: WrongCodes }
  | { kind: 'wrong'; warning?: WrongCodes };

/** `waiting`: an app has still to prove that it has the secret. */
export type FactorState =
  | { state: 'off' }
  | { state: 'waiting'; secret: Buffer }
  | { state: 'on'; codesLeft: number };

/** Manages time-based codes of an app, and recovery codes for when it is lost. */
@Injectable()
export class SecondFactors {
  constructor(
    private readonly pool: Pool,
    private readonly keys: MasterKeys,
    private readonly writes: AuditedWrites,
    private readonly repeated: RepeatedAudits,
  ) {}

  async findState(userId: number): Promise<FactorState> {
    const row = await this.find(userId);
    if (!row) return { state: 'off' };
    if (!row.confirmed) return { state: 'waiting', secret: this.openSecret(userId, row.secret) };
    const [left] = await query<{ count: number }>(this.pool, {
      name: 'recovery_codes_count',
      text: `select count(*)::int as count from recovery_codes where user_id = $1 and used_at is null`,
      values: [userId],
    });
    return { state: 'on', codesLeft: left?.count ?? 0 };
  }

  /** Stores a new secret. A confirmed second factor stays as it is. */
  async beginEnrolment(by: AuditedWriter, userId: number): Promise<void> {
    const secret = this.keys.seal(PURPOSE, randomBytes(TOTP_SECRET_BYTES), getSealContext(userId));
    await this.writes.write(by, async (transaction) => {
      const rows = await query(transaction.manager, {
        text: `insert into second_factors as f (user_id, secret, created_at) values ($1, $2, now())
         on conflict (user_id) do update set secret = excluded.secret, created_at = now()
         where f.confirmed_at is null and f.secret <> excluded.secret
         returning user_id`,
        values: [userId, secret],
      });
      if (rows.length === 0) return;
      await this.repeated.writeWithin(transaction, ['second factor', userId], (_, times) =>
        auditUser(transaction, userId, 'user.second_factor_started', { times }),
      );
    });
  }

  /** @returns the recovery codes, which cannot be shown again; undefined when the code is wrong */
  async confirm(by: AuditedWriter, userId: number, code: string): Promise<string[] | undefined> {
    const row = await this.find(userId);
    if (!row || row.confirmed) return undefined;
    const secret = this.openSecret(userId, row.secret);
    const step = findStepOfCode(secret, code, row.last_step, getNow());
    if (step === undefined) return undefined;
    const { codes, ...recovery } = await generateRecoveryCodes();
    const changed = await this.writes.write(by, async (transaction) => {
      const { manager } = transaction;
      const rows = await query(manager, {
        text: `update second_factors set confirmed_at = now(), last_step = $2
         where user_id = $1 and confirmed_at is null and secret = $3 returning user_id`,
        values: [userId, step, row.secret],
      });
      if (rows.length === 0) return transaction.isRepeated;
      await storeCodes(manager, userId, recovery);
      await auditUser(transaction, userId, 'user.second_factor_added');
      return true;
    });
    return changed ? codes : undefined;
  }

  /** Replaces the recovery codes. @returns the new ones; undefined for a user without a second factor */
  async renewCodes(by: AuditedWriter, userId: number): Promise<string[] | undefined> {
    const row = await this.find(userId);
    if (!row?.confirmed) return undefined;
    const { codes, ...recovery } = await generateRecoveryCodes();
    await this.writes.write(by, async (transaction) => {
      await storeCodes(transaction.manager, userId, recovery);
      await auditUser(transaction, userId, 'user.recovery_codes_renewed');
    });
    return codes;
  }

  async remove(by: AuditedWriter, userId: number): Promise<void> {
    await this.writes.write(by, async (transaction) => {
      const { manager } = transaction;
      const rows = await query<{ confirmed: boolean }>(manager, {
        text: `delete from second_factors where user_id = $1 returning confirmed_at is not null as confirmed`,
        values: [userId],
      });
      await query(manager, 'delete from recovery_codes where user_id = $1', [userId]);
      // Where a second factor is required, the user is led to setting it up again.
      await query(manager, {
        text: `update sessions set second_factor = null where user_id = $1 and second_factor = 'code'`,
        values: [userId],
      });
      if (rows[0]?.confirmed) await auditUser(transaction, userId, 'user.second_factor_removed');
    });
  }

  /** Tells whether a store requires a second factor of its members. */
  async isRequiredBy(accountId: number): Promise<boolean> {
    const rows = await query(this.pool, {
      name: 'second_factor_stores_find',
      text: 'select from second_factor_stores where account_id = $1',
      values: [accountId],
    });
    return rows.length > 0;
  }

  /** Requires a second factor of a store's members, or no longer does. */
  async require(by: AuditedWriter, accountId: number, isRequired: boolean): Promise<void> {
    await this.writes.write(by, async (transaction) => {
      const rows = await query(transaction.manager, {
        text: isRequired
          ? `insert into second_factor_stores (account_id) values ($1)
             on conflict do nothing returning account_id`
          : `with former as (delete from second_factor_stores where account_id = $1 returning account_id)
             select account_id from former`,
        values: [accountId],
      });
      if (rows.length === 0) return;
      await transaction.audit({
        accountIds: [accountId],
        type: 'store.second_factor_rule_changed',
        subject: { changes: { required: { from: !isRequired, to: isRequired } } },
      });
    });
  }

  /**
   * Consumes a code of the app or a recovery code, each once, in the transaction of the sign-in. Wrong codes are
   * counted until a right one, however long that takes.
   * @returns undefined for a user without a second factor
   */
  async consumeCode(
    manager: EntityManager,
    userId: number,
    code: string,
  ): Promise<CodeResult | undefined> {
    const [row] = await query<AttemptRow>(manager, ATTEMPT, [userId]);
    if (!row) return undefined;
    const recovery = parseRecoveryCode(code);
    const isLocked = row.code_failures > MAX_CODE_FAILURES;
    if (recovery !== undefined) {
      if (await this.consumeRecoveryCode(manager, userId, recovery, row))
        return { kind: 'recovery' };
    } else if (!isLocked) {
      const step = findStepOfCode(
        this.openSecret(userId, row.secret),
        code,
        row.last_step,
        getNow(),
      );
      if (step !== undefined) {
        await query(manager, {
          text: 'update second_factors set last_step = $2, code_failures = 0 where user_id = $1',
          values: [userId, step],
        });
        return { kind: 'app' };
      }
    }
    const { name, email, code_failures: failures } = row;
    const isNotified = failures === NOTIFIED_CODE_FAILURES || failures === MAX_CODE_FAILURES;
    return {
      kind: isLocked ? 'locked' : 'wrong',
      ...(isNotified && {
        warning: { userId, name, email, failures, isLocked: failures === MAX_CODE_FAILURES },
      }),
    };
  }

  private async consumeRecoveryCode(
    manager: EntityManager,
    userId: number,
    code: string,
    { recovery_salt: salt }: AttemptRow,
  ): Promise<boolean> {
    if (salt === null) return false;
    const rows = await query(manager, {
      text: `update recovery_codes set used_at = now()
       where hash = $1 and user_id = $2 and used_at is null returning user_id`,
      values: [await hashRecoveryCode(code, salt), userId],
    });
    if (rows.length === 0) return false;
    await query(manager, {
      text: 'update second_factors set code_failures = 0 where user_id = $1',
      values: [userId],
    });
    return true;
  }

  private async find(userId: number): Promise<FactorRow | undefined> {
    const [row] = await query<FactorRow>(this.pool, { ...FIND, values: [userId] });
    return row;
  }

  private openSecret(userId: number, sealed: Buffer): Buffer {
    return this.keys.open(PURPOSE, sealed, getSealContext(userId));
  }
}

type RecoveryHashes = { salt: Buffer; hashes: Buffer[] };

/** Generates the codes before a transaction: ten hashes take a while. */
async function generateRecoveryCodes(): Promise<RecoveryHashes & { codes: string[] }> {
  const salt = randomBytes(SALT_BYTES);
  const codes = toRecoveryCodes(randomBytes(RECOVERY_BYTES));
  const hashes = codes.map((code) => hashRecoveryCode(parseRecoveryCode(code) ?? '', salt));
  return { salt, codes, hashes: await Promise.all(hashes) };
}

/** Hashes by Argon2id, like passwords. */
function hashRecoveryCode(code: string, salt: Buffer): Promise<Buffer> {
  return hashRaw(code, { salt });
}

async function storeCodes(
  manager: EntityManager,
  userId: number,
  { salt, hashes }: RecoveryHashes,
): Promise<void> {
  await query(manager, 'delete from recovery_codes where user_id = $1', [userId]);
  await query(manager, {
    text: 'update second_factors set recovery_salt = $2 where user_id = $1',
    values: [userId, salt],
  });
  await query(manager, {
    text: 'insert into recovery_codes (user_id, hash) select $1, unnest($2::bytea[])',
    values: [userId, hashes],
  });
}
