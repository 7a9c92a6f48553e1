import { Injectable } from '@nestjs/common';
import pg, { Pool } from 'pg';
import type { RetrySchedule } from '#platform/kernel/retry-schedule.js';
import { JobQueue, type JobTable } from '#platform/database/job-queue.js';
import { ProcessSession } from '#platform/database/process-session.js';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

const RETRIES: RetrySchedule = {
  delaysMs: [0.5 * MINUTE_MS, 2 * MINUTE_MS, 10 * MINUTE_MS, HOUR_MS, 6 * HOUR_MS, 24 * HOUR_MS],
  lastRepeats: false,
  maxRequestedMs: 24 * HOUR_MS,
  isSpread: false,
};

/** @property isForced whether to look up an address that was found before */
export type QueuedAddress = { locationId: number; isForced: boolean };

const TABLE: JobTable<QueuedAddress> = {
  name: 'geocoding_queue',
  key: ['locationId'],
  roundRobinBy: 'account_id',
  columns: { locationId: 'location_id', isForced: 'is_forced' },
};

/** Begins anew with addresses that are queued already. This ends the lease of an attempt with a former address. */
const RESTART = 'attempts = 0, due_at = now(), reason = null';

/** The queue of locations whose addresses have to be looked up. */
@Injectable()
export class GeocodingQueue extends JobQueue<QueuedAddress> {
  constructor(pool: Pool, session: ProcessSession) {
    super(pool, session, TABLE, RETRIES);
  }

  /** Enqueues locations within the caller's transaction. */
  async enqueue(
    client: pg.ClientBase,
    locations: { id: number; accountId: number }[],
  ): Promise<void> {
    if (locations.length === 0) return;
    await client.query({
      name: 'geocoding_queue_enqueue',
      text: `
        insert into geocoding_queue (location_id, account_id)
        select id, account_id from unnest($1::bigint[], $2::bigint[]) as x (id, account_id) order by id
        on conflict (location_id) do update set ${RESTART}`,
      values: [locations.map(({ id }) => id), locations.map(({ accountId }) => accountId)],
    });
  }

  /**
   * Enqueues the addresses that another geocoder, or more data, may find better: all except pins and precise ones.
   * @returns how many
   */
  async enqueueImprecise(): Promise<number> {
    const { rowCount } = await this.pool.query(`
      insert into geocoding_queue (location_id, account_id, is_forced)
      select id, account_id, true from locations
      where deleted_at is null
        and coalesce(place_precision, 'none') not in ('manual', 'rooftop', 'street')
      order by id
      on conflict (location_id) do update set is_forced = true, ${RESTART}`);
    return rowCount ?? 0;
  }
}
