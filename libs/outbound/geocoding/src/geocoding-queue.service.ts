import { Injectable } from '@nestjs/common';
import pg, { Pool } from 'pg';

/** Longer than an attempt can take. After that, another dispatcher may claim the address of one that has died. */
const LEASE_SECONDS = 60;

export type QueuedAddress = {
  locationId: number;
  accountId: number;
  /** Grows with each request to look up this address. */
  requestNumber: number;
  /** Whether to look up an address that was found before. */
  isForced: boolean;
  /** Including this one. */
  attempts: number;
};

type ClaimedRow = {
  location_id: number;
  account_id: number;
  request_number: number;
  is_forced: boolean;
  attempts: number;
};

const ENQUEUE = {
  name: 'geocoding_enqueue',
  text: `
    insert into geocoding_queue as q (location_id, account_id)
    select id, account_id from unnest($1::bigint[], $2::bigint[]) as x (id, account_id) order by id
    on conflict (location_id) do update set
      request_number = q.request_number + 1, attempts = 0, due_at = now(), last_error = null`,
};

/** Claims the address that has been due the longest, of the next store after $1. */
const CLAIM = {
  name: 'geocoding_claim',
  text: `
    with next as (
      select location_id from geocoding_queue
      where account_id > $1 and due_at <= now()
      order by account_id, due_at limit 1
      for update skip locked
    )
    update geocoding_queue q
    set attempts = q.attempts + 1, due_at = now() + interval '${LEASE_SECONDS} seconds'
    from next where q.location_id = next.location_id
    returning q.location_id, q.account_id, q.request_number, q.is_forced, q.attempts`,
};

/** The queue of locations whose addresses have to be looked up. */
@Injectable()
export class GeocodingQueue {
  constructor(private readonly pool: Pool) {}

  /** Enqueues locations within the caller's transaction. */
  async enqueue(
    client: pg.ClientBase,
    locations: { id: number; accountId: number }[],
  ): Promise<void> {
    if (locations.length === 0) return;
    const ids = locations.map(({ id }) => id);
    await client.query({ ...ENQUEUE, values: [ids, locations.map(({ accountId }) => accountId)] });
  }

  /** Claims an address. Stores take turns, so that one with many addresses does not delay the others. */
  async claim(afterAccountId: number): Promise<QueuedAddress | undefined> {
    for (const after of [afterAccountId, 0]) {
      const { rows } = await this.pool.query<ClaimedRow>({ ...CLAIM, values: [after] });
      const [row] = rows;
      if (row) {
        const {
          location_id: locationId,
          account_id: accountId,
          is_forced: isForced,
          attempts,
        } = row;
        return {
          locationId,
          accountId,
          requestNumber: row.request_number,
          isForced,
          attempts,
        };
      }
    }
    return undefined;
  }

  /** Removes an address from the queue. If it was enqueued again meanwhile, it is due immediately. */
  async finish({ locationId, requestNumber }: QueuedAddress): Promise<void> {
    await this.pool.query({
      name: 'geocoding_finish',
      text: `with done as (
               delete from geocoding_queue where location_id = $1 and request_number = $2 returning 1
             )
             update geocoding_queue set attempts = 0, due_at = now(), last_error = null
             where location_id = $1 and not exists (select from done)`,
      values: [locationId, requestNumber],
    });
  }

  async postpone(
    { locationId, requestNumber }: QueuedAddress,
    delayMs: number,
    error: string,
  ): Promise<void> {
    await this.pool.query({
      name: 'geocoding_put_off',
      text: `update geocoding_queue
             set due_at = now() + $3 * interval '1 millisecond', last_error = $4
             where location_id = $1 and request_number = $2`,
      values: [locationId, requestNumber, delayMs, error],
    });
  }

  /** Returns an address to the queue without counting the attempt. */
  async release({ locationId, requestNumber }: QueuedAddress): Promise<void> {
    await this.pool.query({
      name: 'geocoding_release',
      text: `update geocoding_queue set attempts = attempts - 1, due_at = now()
             where location_id = $1 and request_number = $2`,
      values: [locationId, requestNumber],
    });
  }

  /**
   * Enqueues the addresses that another geocoder, or more data, may find better: all except pins and precise ones.
   * @returns how many
   */
  async enqueueImprecise(): Promise<number> {
    const { rowCount } = await this.pool.query(`
      insert into geocoding_queue as q (location_id, account_id, is_forced)
      select id, account_id, true from locations
      where deleted_at is null
        and coalesce(place_precision, 'none') not in ('manual', 'rooftop', 'street')
      order by id
      on conflict (location_id) do update set
        request_number = q.request_number + 1, is_forced = true, attempts = 0, due_at = now(), last_error = null`);
    return rowCount ?? 0;
  }
}
