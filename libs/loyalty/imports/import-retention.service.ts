import { Injectable, Logger } from '@nestjs/common';
import { Pool } from 'pg';
import { Config } from '#configuration/config.js';
import { pause } from '#platform/kernel/pause.js';
import { inTransaction } from '#platform/database/connection.js';
import { LeaderLock } from '#platform/database/leader-lock.js';
import { LOCKS } from '#platform/database/locks.js';
import { retryUntilAborted } from '#platform/event-store/log/follow-log.js';
import { ISSUES } from '#translations/issues.js';

const LEADERSHIP = { name: 'imports', lock: LOCKS.importRetention };
const IDLE_MS = 10 * 60_000;

/**
 * Finds the import whose time has been over for longest. The time begins when it has ended, or when it began to wait for its
 * start: one that is checked, runs or is undone keeps its rows for as long as that takes.
 */
const FIND_EXPIRED = {
  name: 'imports_expired',
  text: `select id from imports
         where rows_deleted_at is null and state not in ('checking', 'running', 'undoing')
           and coalesce(finished_at, created_at) < now() - make_interval(days => $1)
         order by coalesce(finished_at, created_at) limit 1 for update skip locked`,
};

/** An import that was never started is over with its rows. */
const FORGET = {
  name: 'imports_forget',
  text: `update imports
         set rows_deleted_at = now(), updated_at = now(),
           error = case when state = 'ready' then $2::jsonb else error end,
           finished_at = coalesce(finished_at, now()),
           state = case when state = 'ready' then 'failed' else state end
         where id = $1`,
};

/** Deletes the rows of imports, which are personal, when their time is over. The counts stay. */
@Injectable()
export class ImportRetention {
  private readonly log = new Logger(LEADERSHIP.name);

  constructor(
    private readonly pool: Pool,
    private readonly lock: LeaderLock,
    private readonly config: Config,
  ) {}

  /** Runs until the signal aborts, whatever happens to the database. */
  async run(signal: AbortSignal): Promise<void> {
    await this.lock.lead(LEADERSHIP, signal, async (leading) => {
      await retryUntilAborted(this.log, leading, async (succeeded) => {
        const isBusy = await this.deleteOldest();
        succeeded();
        if (!isBusy) await pause(IDLE_MS, leading);
      });
    });
  }

  /** Deletes the rows of the oldest import. @returns false when none is old enough */
  deleteOldest(): Promise<boolean> {
    const { importRetentionDays: days } = this.config;
    return inTransaction(this.pool, async (client) => {
      const { rows } = await client.query<{ id: number }>({ ...FIND_EXPIRED, values: [days] });
      const [expired] = rows;
      if (!expired) return false;
      await client.query('delete from import_rows where import_id = $1', [expired.id]);
      const error = { base: [ISSUES.import_expired({ days })] };
      await client.query({ ...FORGET, values: [expired.id, JSON.stringify(error)] });
      return true;
    });
  }
}
