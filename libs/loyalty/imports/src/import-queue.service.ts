import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import type { RetrySchedule } from '#kernel/retry-schedule.js';
import { JobQueue, LEASED, type Job, type JobOutcome, type JobTable } from '#database/job-queue.js';
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
  turnsBy: 'account_id',
  columns: { id: 'id', accountId: 'account_id', state: 'state' },
};

/** The imports that have something to do. The stores take turns, a part of an import each. */
@Injectable()
export class ImportQueue extends JobQueue<QueuedImport> {
  constructor(pool: Pool) {
    super(pool, TABLE, RETRIES);
  }

  /** Ends a turn: the rest of the import is due at once, after the imports of other stores. */
  async endTurn(job: Job<QueuedImport>, delayMs = 0): Promise<void> {
    const text = `update imports set attempts = 0, due_at = now() + $1 * interval '1 millisecond' where ${LEASED}`;
    await this.change(job, 'end_turn', text, [delayMs]);
  }

  /**
   * Ends the work on an import in a state.
   * @returns false when the lease has ended, and somebody else goes on
   */
  async enter(
    job: Job<QueuedImport>,
    state: StoredState,
    { isDue, error = null }: { isDue: boolean; error?: string | null },
  ): Promise<boolean> {
    const text = `
      update imports
      set state = $1, due_at = case when $2 then now() end, error = $3, attempts = 0, updated_at = now(),
        started_at = case when $1 = 'running' then coalesce(started_at, now()) else started_at end,
        finished_at = case when $1 in ('done', 'failed', 'undone') then now() end
      where ${LEASED}`;
    return (await this.change(job, 'enter', text, [state, isDue, error])) === 1;
  }

  /** A job is never removed: it is an import, whose result stays. */
  override async finish(job: Job<QueuedImport>, outcome: JobOutcome): Promise<void> {
    const error = outcome.kind === 'done' ? null : outcome.error;
    await this.enter(job, 'failed', { isDue: false, error });
  }
}
