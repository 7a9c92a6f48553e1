import { Injectable } from '@nestjs/common';
import pg, { Pool } from 'pg';
import { findLastServed } from '#kernel/turns.js';
import type { PassChannel, PassUpdate, UpdateRequest } from './pass-sender.js';

/** Longer than an attempt can last. After that, another dispatcher may claim the update of one that has died. */
const LEASE_SECONDS = 60;
/** Several stamps within this time are one update. */
const GATHER_MS = 1_000;

/** @property leaseUntil the end of the lease, which tells one claim from every other */
export type ClaimedUpdate = PassUpdate & { requestNumber: number; leaseUntil: string };

const REQUEST = {
  name: 'pass_updates_request',
  text: `
    insert into pass_updates as u (channel, target, account_id, priority, due_at)
    select channel, target, account_id, $4, now() + $5 * interval '1 millisecond'
    from unnest($1::text[], $2::text[], $3::bigint[]) as x (channel, target, account_id)
    order by channel, target
    on conflict (channel, target) do update set
      request_number = u.request_number + 1,
      priority = least(u.priority, excluded.priority),
      -- A failing target waits for its next attempt.
      due_at = case when u.attempts > 0 then u.due_at else least(u.due_at, excluded.due_at) end`,
};

/**
 * The stores take turns, so that one with many updates does not delay the others, even when only one update can be
 * claimed at a time. $1 channel, $2 priority, $3 limit, $4 the store that was served last.
 */
const CLAIM = {
  name: 'pass_updates_claim',
  text: `
    with recursive stores as (
      (select account_id from pass_updates where channel = $1 and priority = $2 order by account_id limit 1)
      union all
      select (select u.account_id from pass_updates u
              where u.channel = $1 and u.priority = $2 and u.account_id > s.account_id
              order by u.account_id limit 1)
      from stores s where s.account_id is not null
    ), turns as (
      select d.target
      from stores s
      cross join lateral (
        select u.target, u.due_at, row_number() over (order by u.due_at) as turn from pass_updates u
        where u.channel = $1 and u.priority = $2 and u.account_id = s.account_id and u.due_at <= now()
        order by u.due_at limit $3
      ) d
      order by d.turn, s.account_id <= $4, s.account_id limit $3
    ), due as (
      select u.channel, u.target from pass_updates u join turns using (target)
      where u.channel = $1 and u.due_at <= now()
      for update of u skip locked
    )
    update pass_updates u
    set attempts = u.attempts + 1, due_at = now() + interval '${LEASE_SECONDS} seconds'
    from due where u.channel = due.channel and u.target = due.target
    returning u.channel, u.target, u.account_id, u.request_number, u.attempts, u.due_at::text as lease_until`,
};

type ClaimedRow = {
  channel: PassChannel;
  target: string;
  account_id: number;
  request_number: number;
  attempts: number;
  lease_until: string;
};

/** Stores updates until they are sent: each at least once, and once for several changes in a row. */
@Injectable()
export class PassUpdates {
  /** The store that was served last, by channel and priority. */
  private readonly lastServed = new Map<string, number>();

  constructor(private readonly pool: Pool) {}

  /**
   * Requests updates, in the caller's transaction.
   * @param priority 0 for a change that its customer is waiting for, 1 for one of many
   */
  async request(
    client: pg.ClientBase | pg.Pool,
    updates: UpdateRequest[],
    priority: 0 | 1,
  ): Promise<void> {
    if (updates.length === 0) return;
    await client.query({
      ...REQUEST,
      values: [
        updates.map(({ channel }) => channel),
        updates.map(({ target }) => target),
        updates.map(({ accountId }) => accountId),
        priority,
        GATHER_MS,
      ],
    });
  }

  /** Claims updates for a minute. Those that a customer is waiting for come first. */
  async claim(channel: PassChannel, limit: number): Promise<ClaimedUpdate[]> {
    const claimed: ClaimedUpdate[] = [];
    for (const priority of [0, 1]) {
      if (claimed.length === limit) break;
      const turns = `${channel} ${priority}`;
      const after = this.lastServed.get(turns) ?? 0;
      const { rows } = await this.pool.query<ClaimedRow>({
        ...CLAIM,
        values: [channel, priority, limit - claimed.length, after],
      });
      const stores = rows.map((row) => row.account_id);
      this.lastServed.set(turns, findLastServed(after, stores));
      for (const row of rows) {
        claimed.push({
          channel: row.channel,
          target: row.target,
          accountId: row.account_id,
          attempts: row.attempts,
          requestNumber: Number(row.request_number),
          leaseUntil: row.lease_until,
        });
      }
    }
    return claimed;
  }

  /** Removes an update, or makes it due again when requested meanwhile. Does nothing once the lease has ended. */
  async finish({ channel, target, requestNumber, leaseUntil }: ClaimedUpdate): Promise<void> {
    await this.pool.query({
      name: 'pass_updates_finish',
      text: `with done as (
               delete from pass_updates
               where channel = $1 and target = $2 and request_number = $3 and due_at = $4::timestamptz
               returning 1
             )
             update pass_updates set attempts = 0, due_at = now(), last_error = null
             where channel = $1 and target = $2 and due_at = $4::timestamptz
               and not exists (select from done)`,
      values: [channel, target, requestNumber, leaseUntil],
    });
  }

  async putOff(
    { channel, target, leaseUntil }: ClaimedUpdate,
    inMs: number,
    error: string,
  ): Promise<void> {
    await this.pool.query({
      name: 'pass_updates_put_off',
      text: `update pass_updates set due_at = now() + $3 * interval '1 millisecond', last_error = $4
             where channel = $1 and target = $2 and due_at = $5::timestamptz`,
      values: [channel, target, inMs, error, leaseUntil],
    });
  }
}
