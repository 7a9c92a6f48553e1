import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import type { FieldIssues } from '#platform/kernel/issues.js';
import type { RetrySchedule } from '#platform/kernel/retry-schedule.js';
import {
  JobQueue,
  LEASED,
  type Job,
  type JobOutcome,
  type JobTable,
} from '#platform/database/job-queue.js';
import { inTransaction } from '#platform/database/connection.js';
import { ProcessSession } from '#platform/database/process-session.js';
import { ISSUES } from '#translations/issues.js';
import type { StoredState } from './customer-import.js';

const MINUTE_MS = 60_000;

/** A fault of the service or the database, not of the file: its rows have errors of their own. */
const RETRIES: RetrySchedule = {
  delaysMs: [1_000, 5_000, 30_000, MINUTE_MS, 5 * MINUTE_MS, 10 * MINUTE_MS],
  lastRepeats: false,
  maxRequestedMs: 10 * MINUTE_MS,
  isSpread: false,
};

export type QueuedImport = { id: number; accountId: number; state: StoredState };

const TABLE: JobTable<QueuedImport> = {
  name: 'imports',
  key: ['id'],
  roundRobinBy: 'account_id',
  columns: { id: 'id', accountId: 'account_id', state: 'state' },
};

/** The imports that have something to do. Round robin over the stores, a slice of an import each. */
@Injectable()
export class ImportQueue extends JobQueue<QueuedImport> {
  constructor(pool: Pool, session: ProcessSession) {
    super(pool, session, TABLE, RETRIES);
  }

  /** Ends a slice: the rest of the import is due at once, after the imports of other stores. */
  async endSlice(job: Job<QueuedImport>, delayMs = 0): Promise<void> {
    const text = `
      update imports set attempts = 0, due_at = now() + $1 * interval '1 millisecond', process = null
      where ${LEASED}`;
    await this.change(job, 'end_slice', text, [delayMs]);
  }

  /**
   * Extends the lease of an attempt.
   * @returns false when it has ended, and somebody else goes on
   */
  async extendLease(job: Job<QueuedImport>): Promise<boolean> {
    const { rows } = await this.runWithLease((leaseUntil) =>
      this.pool.query<{ lease_until: string }>({
        name: 'imports_extend_lease',
        text: `update imports set due_at = $4, process = $3
               where id = $1 and due_at = $2::timestamptz returning due_at::text as lease_until`,
        values: [job.id, job.leaseUntil, this.session.leaseHolder, leaseUntil],
      }),
    );
    const [extended] = rows;
    if (extended) job.leaseUntil = extended.lease_until;
    return extended !== undefined;
  }

  /**
   * Ends the check: removes the file, since its rows are stored, and the cells of people who were erased since the upload,
   * and counts the rows as they are now.
   */
  async finishCheck(job: Job<QueuedImport>): Promise<void> {
    await inTransaction(this.pool, async (client) => {
      const lock = `update imports set updated_at = now() where ${LEASED}`;
      if ((await this.change(job, 'finish_check_lock', lock, [], client)) === 0) return;
      await client.query({
        name: 'imports_drop_erased',
        text: `select es.drop_imported_cells(erased_claims, '{}') from imports where id = $1`,
        values: [job.id],
      });
      const text = `
        update imports
        set state = case when dry_run then 'ready' else 'running' end, file = null, erased_claims = '{}', attempts = 0,
          due_at = case when dry_run then null else now() end, process = null,
          started_at = case when dry_run then null else now() end,
          rows_done = case when dry_run then rows_total else c.failed end,
          created = c.created, updated = c.updated, unchanged = c.unchanged, failed = c.failed
        from (
          select count(*) filter (where expected = 'created')::int as created,
            count(*) filter (where expected = 'updated')::int as updated,
            count(*) filter (where expected = 'unchanged')::int as unchanged,
            count(*) filter (where state = 'failed')::int as failed
          from import_rows where import_id = $1
        ) c
        where ${LEASED}`;
      await this.change(job, 'finish_check', text, [job.id], client);
    });
  }

  /** Ends the work on an import. Changes nothing when the lease has ended: somebody else goes on. */
  async enter(
    job: Job<QueuedImport>,
    state: 'done' | 'failed' | 'undone',
    error: FieldIssues | null = null,
  ): Promise<void> {
    const text = `
      update imports
      set state = $1, due_at = null, process = null, file = null, erased_claims = '{}', error = $2, attempts = 0, updated_at = now(), finished_at = now()
      where ${LEASED}`;
    await this.change(job, 'enter', text, [state, error && JSON.stringify(error)]);
  }

  /** A job is never removed: it is an import, whose result stays. */
  override async finish(job: Job<QueuedImport>, outcome: JobOutcome): Promise<void> {
    const issues = outcome.kind === 'refused' ? outcome.issues : undefined;
    await this.enter(job, 'failed', issues ?? { base: [ISSUES.import_failed] });
  }
}
