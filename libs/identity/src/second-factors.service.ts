import { Injectable } from '@nestjs/common';
import { randomBytes } from 'node:crypto';
import { Pool } from 'pg';
import type { EntityManager } from 'typeorm';
import { ask } from '#database/connection.js';
import { MasterKeys } from '#database/master-keys.js';
import type { SealedColumn } from '#database/sealed-column.js';
import { PlainWrites, type PlainWriter } from '#event-store/plain-writes.service.js';
import {
  RECOVERY_BYTES,
  recoveryCodesOf,
  recoveryHash,
  SECRET_BYTES,
  stepOfCode,
} from './second-factor.js';
import { auditOfUser } from './user-audit.service.js';

const FIND = {
  name: 'second_factors_find',
  text: `select secret, confirmed_at is not null as confirmed, last_step
         from second_factors where user_id = $1`,
};

const PURPOSE = 'second factors';
const contextOf = (userId: unknown): string => `second factor of user ${String(userId)}`;

export const SECOND_FACTOR_COLUMN: SealedColumn = {
  name: 'second factors',
  table: 'second_factors',
  column: 'secret',
  id: 'user_id',
  idType: 'bigint',
  purpose: PURPOSE,
  contextOf,
};

type FactorRow = { secret: Buffer; confirmed: boolean; last_step: number };

/** `waiting`: with the secret that an app has still to prove. */
export type FactorState =
  | { state: 'off' }
  | { state: 'waiting'; secret: Buffer }
  | { state: 'on'; codesLeft: number };

/** Time-based codes of an app, and codes on paper for when it is lost. */
@Injectable()
export class SecondFactors {
  constructor(
    private readonly pool: Pool,
    private readonly keys: MasterKeys,
    private readonly writes: PlainWrites,
  ) {}

  async stateOf(userId: number): Promise<FactorState> {
    const row = await this.find(userId);
    if (!row) return { state: 'off' };
    if (!row.confirmed) return { state: 'waiting', secret: this.open(userId, row.secret) };
    const [left] = await ask<{ count: number }>(this.pool, {
      name: 'recovery_codes_left',
      text: `select count(*)::int as count from recovery_codes where user_id = $1 and used_at is null`,
      values: [userId],
    });
    return { state: 'on', codesLeft: left?.count ?? 0 };
  }

  /** Nothing changes for who has one already. */
  async begin(by: PlainWriter, userId: number): Promise<void> {
    const secret = this.keys.seal(PURPOSE, randomBytes(SECRET_BYTES), contextOf(userId));
    await this.writes.write(by, async ({ manager }) => {
      await manager.query(
        `insert into second_factors as f (user_id, secret, created_at) values ($1, $2, now())
         on conflict (user_id) do update set secret = excluded.secret, created_at = now()
         where f.confirmed_at is null`,
        [userId, secret],
      );
    });
  }

  /** @returns the recovery codes, which cannot be shown again; undefined when the code is wrong */
  async confirm(by: PlainWriter, userId: number, code: string): Promise<string[] | undefined> {
    const row = await this.find(userId);
    if (!row || row.confirmed) return undefined;
    const secret = this.open(userId, row.secret);
    const step = stepOfCode(secret, code, row.last_step, new Date());
    if (step === undefined) return undefined;
    const codes = recoveryCodesOf(randomBytes(RECOVERY_BYTES));
    const changed = await this.writes.write(by, async (transaction) => {
      const { manager } = transaction;
      const [rows]: [unknown[]] = await manager.query(
        `update second_factors set confirmed_at = now(), last_step = $2
         where user_id = $1 and confirmed_at is null and secret = $3 returning user_id`,
        [userId, step, row.secret],
      );
      if (rows.length === 0) return transaction.repeated;
      await storeCodes(manager, userId, codes);
      await auditOfUser(transaction, userId, 'user.second_factor_added');
      return true;
    });
    return changed ? codes : undefined;
  }

  /** The former ones end. @returns the recovery codes; undefined for who has no second factor */
  async renewCodes(by: PlainWriter, userId: number): Promise<string[] | undefined> {
    const row = await this.find(userId);
    if (!row?.confirmed) return undefined;
    const codes = recoveryCodesOf(randomBytes(RECOVERY_BYTES));
    await this.writes.write(by, async (transaction) => {
      await storeCodes(transaction.manager, userId, codes);
      await auditOfUser(transaction, userId, 'user.recovery_codes_renewed');
    });
    return codes;
  }

  async remove(by: PlainWriter, userId: number): Promise<void> {
    await this.writes.write(by, async (transaction) => {
      const { manager } = transaction;
      const [rows]: [{ confirmed: boolean }[]] = await manager.query(
        `delete from second_factors where user_id = $1 returning confirmed_at is not null as confirmed`,
        [userId],
      );
      await manager.query('delete from recovery_codes where user_id = $1', [userId]);
      if (rows[0]?.confirmed) await auditOfUser(transaction, userId, 'user.second_factor_removed');
    });
  }

  /**
   * Takes a code of the app or a recovery code, each once, in the transaction of who signs the user in.
   * @returns which it was; undefined when it is wrong
   */
  async take(
    manager: EntityManager,
    userId: number,
    code: string,
  ): Promise<'app' | 'recovery' | undefined> {
    const [row]: FactorRow[] = await manager.query(FIND.text, [userId]);
    if (!row?.confirmed) return undefined;
    const step = stepOfCode(this.open(userId, row.secret), code, row.last_step, new Date());
    if (step !== undefined) {
      // Of two requests with the same code, one finds it taken.
      const [rows]: [unknown[]] = await manager.query(
        `update second_factors set last_step = $2
         where user_id = $1 and last_step < $2 returning user_id`,
        [userId, step],
      );
      return rows.length > 0 ? 'app' : undefined;
    }
    const [rows]: [unknown[]] = await manager.query(
      `update recovery_codes set used_at = now()
       where sha256 = $1 and user_id = $2 and used_at is null returning user_id`,
      [recoveryHash(userId, code), userId],
    );
    return rows.length > 0 ? 'recovery' : undefined;
  }

  private async find(userId: number): Promise<FactorRow | undefined> {
    const [row] = await ask<FactorRow>(this.pool, { ...FIND, values: [userId] });
    return row;
  }

  private open(userId: number, sealed: Buffer): Buffer {
    return this.keys.open(PURPOSE, sealed, contextOf(userId));
  }
}

async function storeCodes(manager: EntityManager, userId: number, codes: string[]): Promise<void> {
  await manager.query('delete from recovery_codes where user_id = $1', [userId]);
  await manager.query(
    'insert into recovery_codes (user_id, sha256) select $1, unnest($2::bytea[])',
    [userId, codes.map((code) => recoveryHash(userId, code))],
  );
}
