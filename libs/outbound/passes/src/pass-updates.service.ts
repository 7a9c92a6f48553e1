import { Injectable } from '@nestjs/common';
import pg, { Pool } from 'pg';
import type { PassChannel, PassUpdate } from './pass-sender.js';

/** Longer than an attempt can last: after that, another dispatcher may take the update of one that has died. */
const LEASE_SECONDS = 60;
/** Several stamps within it are one update. */
const GATHER_MS = 1_000;

export type WantedUpdate = { channel: PassChannel; target: string; accountId: number };
export type ClaimedUpdate = PassUpdate & { asked: number };

const ASK = {
  name: 'pass_updates_ask',
  text: `
    insert into pass_updates as u (channel, target, account_id, priority, due_at)
    select channel, target, account_id, $4, now() + $5 * interval '1 millisecond'
    from unnest($1::text[], $2::text[], $3::bigint[]) as x (channel, target, account_id)
    order by channel, target
    on conflict (channel, target) do update set
      asked = u.asked + 1,
      priority = least(u.priority, excluded.priority),
      -- A failing target waits for its next attempt.
      due_at = case when u.attempts > 0 then u.due_at else least(u.due_at, excluded.due_at) end`,
};

/** No store gets more than its share of a claim while others wait. */
const CLAIM = {
  name: 'pass_updates_claim',
  text: `
    with due as (
      select channel, target from pass_updates
      where channel = $1 and due_at <= now()
      order by priority, due_at limit $2
      for update skip locked
    )
    update pass_updates u
    set attempts = u.attempts + 1, due_at = now() + interval '${LEASE_SECONDS} seconds'
    from due where u.channel = due.channel and u.target = due.target
    returning u.channel, u.target, u.account_id, u.asked, u.attempts`,
};

/** Updates waiting to be sent: at least once each, and once for several changes in a row. */
@Injectable()
export class PassUpdates {
  constructor(private readonly pool: Pool) {}

  /**
   * Part of the caller's transaction.
   * @param priority 0 for a change that its customer is waiting for, 1 for one of many
   */
  async ask(
    client: pg.ClientBase | pg.Pool,
    updates: WantedUpdate[],
    priority: 0 | 1,
  ): Promise<void> {
    if (updates.length === 0) return;
    await client.query({
      ...ASK,
      values: [
        updates.map(({ channel }) => channel),
        updates.map(({ target }) => target),
        updates.map(({ accountId }) => accountId),
        priority,
        GATHER_MS,
      ],
    });
  }

  /** Nobody else gets these for a minute. */
  async claim(channel: PassChannel, limit: number): Promise<ClaimedUpdate[]> {
    const { rows } = await this.pool.query<{
      channel: PassChannel;
      target: string;
      account_id: number;
      asked: number;
      attempts: number;
    }>({ ...CLAIM, values: [channel, limit] });
    return rows.map(({ account_id: accountId, asked, ...row }) => ({
      ...row,
      accountId,
      asked: Number(asked),
    }));
  }

  /** It is sent again at once when it was asked for meanwhile. */
  async finish({ channel, target, asked }: ClaimedUpdate): Promise<void> {
    await this.pool.query({
      name: 'pass_updates_finish',
      text: `with done as (
               delete from pass_updates where channel = $1 and target = $2 and asked = $3 returning 1
             )
             update pass_updates set attempts = 0, due_at = now(), last_error = null
             where channel = $1 and target = $2 and not exists (select from done)`,
      values: [channel, target, asked],
    });
  }

  async putOff({ channel, target }: ClaimedUpdate, inMs: number, error: string): Promise<void> {
    await this.pool.query({
      name: 'pass_updates_put_off',
      text: `update pass_updates set due_at = now() + $3 * interval '1 millisecond', last_error = $4
             where channel = $1 and target = $2`,
      values: [channel, target, inMs, error],
    });
  }

  /** Of one target, if there is something left to send to it. */
  async stateOf(
    channel: PassChannel,
    target: string,
  ): Promise<{ attempts: number; lastError: string | null } | undefined> {
    const { rows } = await this.pool.query<{ attempts: number; last_error: string | null }>({
      name: 'pass_updates_state',
      text: 'select attempts, last_error from pass_updates where channel = $1 and target = $2',
      values: [channel, target],
    });
    const [row] = rows;
    return row && { attempts: row.attempts, lastError: row.last_error };
  }
}
