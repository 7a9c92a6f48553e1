import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { Config } from '#configuration/config.js';
import { pause } from '#kernel/pause.js';

/** A request that would have to wait longer is tried again later. */
const MAX_WAIT_MS = 10_000;

/**
 * Limits the rate of requests across all processes, because Google counts them by issuer. The next free time is stored
 * in the database, and each request reserves it.
 */
@Injectable()
export class GoogleRateLimiter {
  constructor(
    private readonly pool: Pool,
    private readonly config: Config,
  ) {}

  /** Waits until a request may be sent. @returns false: not within ten seconds, or not before the signal aborts */
  async acquire(signal: AbortSignal): Promise<boolean> {
    const intervalMs = 1000 / (this.config.google?.requestsPerSecond ?? 1);
    const { rows } = await this.pool.query<{ wait_ms: number }>({
      name: 'google_rate_limit_acquire',
      text: `update google_rate_limit
             set next_at = greatest(next_at, clock_timestamp()) + $1::float8 * interval '1 millisecond'
             where next_at < clock_timestamp() + $2::float8 * interval '1 millisecond'
             returning (extract(epoch from next_at - clock_timestamp()) * 1000 - $1)::float8 as wait_ms`,
      values: [intervalMs, MAX_WAIT_MS],
    });
    const [slot] = rows;
    if (!slot) return false;
    if (slot.wait_ms > 0) await pause(slot.wait_ms, signal);
    return !signal.aborted;
  }

  /** Stops the requests of all processes for this long, after Google has refused one as too many. */
  async pauseFor(milliseconds: number): Promise<void> {
    await this.pool.query({
      name: 'google_rate_limit_pause',
      text: `update google_rate_limit
             set next_at = greatest(next_at, clock_timestamp() + $1::float8 * interval '1 millisecond')`,
      values: [milliseconds],
    });
  }
}
