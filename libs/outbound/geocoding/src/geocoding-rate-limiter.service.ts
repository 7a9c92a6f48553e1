import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';

/** A request that would have to wait longer is tried again later. */
const MAX_WAIT_MS = 10_000;
const MAX_PAUSE_MS = 3600_000;

/**
 * Limits the rate of requests across all processes: each reserves the next free time, which is stored in the database.
 */
@Injectable()
export class GeocodingRateLimiter {
  constructor(private readonly pool: Pool) {}

  /** Reserves the time of a request. @returns milliseconds to wait; undefined: it would be more than ten seconds */
  async acquire(provider: string, requestsPerSecond: number): Promise<number | undefined> {
    const { rows } = await this.pool.query<{ wait_ms: number }>({
      name: 'geocoding_rate_limit_acquire',
      text: `insert into geocoding_rate_limit as p (provider, next_at)
             values ($1, clock_timestamp() + $2::float8 * interval '1 millisecond')
             on conflict (provider) do update
               set next_at = greatest(p.next_at, clock_timestamp())
                 + $2::float8 * interval '1 millisecond'
               where p.next_at < clock_timestamp() + $3::float8 * interval '1 millisecond'
             returning (extract(epoch from next_at - clock_timestamp()) * 1000 - $2)::float8 as wait_ms`,
      values: [provider, 1000 / requestsPerSecond, MAX_WAIT_MS],
    });
    const [slot] = rows;
    return slot && Math.max(0, slot.wait_ms);
  }

  /** Stops the requests of all processes to a server for this long. */
  async pauseFor(provider: string, milliseconds: number): Promise<void> {
    await this.pool.query({
      name: 'geocoding_rate_limit_pause',
      text: `insert into geocoding_rate_limit as p (provider, next_at)
             values ($1, clock_timestamp() + $2::float8 * interval '1 millisecond')
             on conflict (provider) do update set next_at = greatest(p.next_at, excluded.next_at)`,
      values: [provider, Math.min(milliseconds, MAX_PAUSE_MS)],
    });
  }
}
