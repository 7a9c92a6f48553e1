import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Config } from '#configuration/config.js';
import { RejectedError } from '#platform/kernel/errors.js';
import { ISSUES } from '#translations/issues.js';
import { query } from '#platform/database/connection.js';
import { LOCKS } from '#platform/database/locks.js';
import {
  CapOverrides,
  type CapShare,
} from '#platform/event-store/commands/cap-overrides.service.js';
import { checkCap } from '#platform/event-store/port/caps.js';
import type { CustomerImport } from './customer-import.js';
import { importCap, trialCap } from './import.entity.js';

/** Names the quota of rows in `es.cap_overrides`. */
export const IMPORT_ROWS_PER_DAY = 'import_rows_per_day';

const MAX_UNFINISHED_IMPORTS = 10;

/**
 * Limits the imports of a store, and their rows in a day. Trials, which wait for a start, have the same limits of their
 * own: they take nothing from imports that change customers.
 */
@Injectable()
export class ImportLimits {
  constructor(
    private readonly overrides: CapOverrides,
    private readonly config: Config,
  ) {}

  /** Finds how many rows a store may import in a day, with those that share the limit. */
  findMaxRows(accountId: number): Promise<CapShare<number>> {
    const max = this.config.quotas[IMPORT_ROWS_PER_DAY];
    return this.overrides.getShare(IMPORT_ROWS_PER_DAY, accountId, max);
  }

  /**
   * Asserts in the transaction that creates or starts an import that it is within the limits.
   * @param isTrial whether it waits for a start
   * @throws RejectedError
   */
  async assertWithin(
    manager: EntityManager,
    { id, accountId, rowsTotal }: Pick<CustomerImport, 'id' | 'accountId' | 'rowsTotal'>,
    { isTrial, maxRows }: { isTrial: boolean; maxRows: CapShare<number> },
  ): Promise<void> {
    const kind = isTrial ? trialCap : importCap;
    await checkCap(manager, { kind, owner: accountId, id, max: MAX_UNFINISHED_IMPORTS });
    const { owner, owners, max } = maxRows;
    // Of two files that take the last rows at the same time, one waits for the other.
    await query(manager, {
      text: 'select pg_advisory_xact_lock(hashtextextended($1, $2))',
      values: [String(owner), LOCKS.importedRowsPerDay],
    });
    const [row] = await query<{ used: number }>(manager, {
      text: `select coalesce(sum(rows_total), 0)::int as used from imports
       where account_id = any ($1) and coalesce(started_at, created_at) > now() - interval '1 day' and id <> $2
         and (dry_run and started_at is null) = $3`,
      values: [owners, id, isTrial],
    });
    const left = Math.max(0, max - (row?.used ?? 0));
    if (rowsTotal <= left) return;
    const issue = ISSUES[isTrial ? 'import_check_quota' : 'import_quota'];
    throw new RejectedError(
      {
        base: [issue({ rows: rowsTotal, left, max })],
      },
      'quota_exceeded',
      'Import the rest tomorrow, or ask whoever runs the service for a larger quota.',
    );
  }
}
