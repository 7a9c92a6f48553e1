import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { pause } from '#platform/kernel/pause.js';

/** A request that would have to wait longer is tried again later. */
const MAX_WAIT_MS = 10_000;
const MAX_PAUSE_MS = 3600_000;

/**
 * Limits the rate of requests to each vendor across all processes. The next free time is stored in the database, and
 * each request reserves it.
 */
@Injectable()
export class VendorRateLimiter {
  constructor(private readonly pool: Pool) {}

  /** Waits until a request may be sent. @returns false: not within ten seconds, or not before the signal aborts */
  async acquire(vendor: string, requestsPerSecond: number, signal: AbortSignal): Promise<boolean> {
    const { rows } = await this.pool.query<{ wait_ms: number }>({
      name: 'vendor_rate_limit_acquire',
      text: `insert into vendor_rate_limits as v (vendor, next_at)
             values ($1, clock_timestamp() + $2::float8 * interval '1 millisecond')
             on conflict (vendor) do update
               set next_at = greatest(v.next_at, clock_timestamp()) + $2::float8 * interval '1 millisecond'
               where v.next_at < clock_timestamp() + $3::float8 * interval '1 millisecond'
             returning (extract(epoch from next_at - clock_timestamp()) * 1000 - $2)::float8 as wait_ms`,
      values: [vendor, 1000 / requestsPerSecond, MAX_WAIT_MS],
    });
    const [slot] = rows;
    if (!slot) return false;
    if (slot.wait_ms > 0) await pause(slot.wait_ms, signal);
    return !signal.aborted;
  }

  /** Stops the requests of all processes to a vendor for this long, at most an hour. */
  async pauseFor(vendor: string, milliseconds: number): Promise<void> {
    await this.pool.query({
      name: 'vendor_rate_limit_pause',
      text: `insert into vendor_rate_limits as v (vendor, next_at)
             values ($1, clock_timestamp() + $2::float8 * interval '1 millisecond')
             on conflict (vendor) do update set next_at = greatest(v.next_at, excluded.next_at)`,
      values: [vendor, Math.min(milliseconds, MAX_PAUSE_MS)],
    });
  }
}
