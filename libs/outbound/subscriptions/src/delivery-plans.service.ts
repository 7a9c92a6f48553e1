import { Injectable, Logger } from '@nestjs/common';
import { Pool } from 'pg';
import type { EntityManager } from 'typeorm';
import { messageOf } from '#kernel/errors.js';
import { ask } from '#database/connection.js';
import { armLanes } from './lane-arming.js';
import { WorkHints } from './work-hints.service.js';
import { type PublicEventType } from '#public-events/public-event.js';

/** Times are of when events were recorded. */
export type Replay = {
  subscriptionId: number;
  accountId: number;
  from: Date;
  /** Exclusive. */
  to: Date;
  /** Null: all. */
  types: PublicEventType[] | null;
  /** See `replayBound`. */
  last: number;
};

const ARM = armLanes('values ($1::bigint)');

const REDELIVER = `
  with asked as (
    insert into webhook_redeliveries (subscription_id, delivery_id, created_at) values ($1, $2, now())
    on conflict (subscription_id, delivery_id) do nothing
  ) ${ARM}`;

/** By its body, or by its place in the history. */
const KEPT = `
  select 1 from webhook_deliveries d
  where d.subscription_id = $1 and d.id = $2 and (
    exists (select from webhook_bodies b where b.seq = d.event_seq)
    or exists (select from webhook_events e
               where e.account_id = d.account_id and e.seq = d.event_seq and e.stream is not null))`;

/** Events are planned no earlier than they are recorded; a day is left for clocks that disagree. */
const MATCHED = `
  select count(*) as n from webhook_events e
  where e.account_id = $1 and e.seq >= webhook_first_id($2::timestamptz - interval '1 day') and e.seq <= $5
    and e.recorded_at >= $2 and e.recorded_at < $3 and ($4::text[] is null or e.type = any ($4))`;

/** Done again after an unknown outcome it asks for the same only once, as the bound is the same. */
const REPLAY = `
  insert into webhook_replays (subscription_id, account_id, recorded_from, recorded_to, types, after_seq, last_seq,
    created_at)
  select $1, $2, $3, $4, $5, webhook_first_id($3::timestamptz - interval '1 day') - 1, $6, now()
  where not exists (select from webhook_replays where subscription_id = $1 and last_seq = $6)`;

/** What the API asks of dispatchers. All of it is written down first, and so survives whoever dies. */
@Injectable()
export class DeliveryPlans {
  private readonly log = new Logger('webhook deliveries');

  constructor(
    private readonly pool: Pool,
    private readonly hints: WorkHints,
  ) {}

  /**
   * After every change of a subscription and after its end: what is planned goes by the new state. Never
   * throws, because the change is committed: the sweep finds it, somewhat later.
   */
  async changed(subscriptionId: number): Promise<void> {
    try {
      await ask(this.pool, { name: 'webhook_lane_arm', text: ARM, values: [subscriptionId] });
      await this.hints.about(subscriptionId);
    } catch (error) {
      this.log.warn(`a changed subscription is looked at later: ${messageOf(error)}`, {
        subscription_id: subscriptionId,
      });
    }
  }

  /** Whether the delivery's event can still be sent: its day may have been dropped. */
  async isKept(subscriptionId: number, deliveryId: number): Promise<boolean> {
    const values = [subscriptionId, deliveryId];
    return (await ask(this.pool, { name: 'webhook_event_kept', text: KEPT, values })).length > 0;
  }

  /**
   * One attempt at once, of kind manual: it counts for nothing in the schedule, but a success delivers,
   * and a 410 deletes the subscription. Asked for twice before it was made, it is made once.
   */
  async redeliver(
    manager: EntityManager,
    subscriptionId: number,
    deliveryId: number,
  ): Promise<void> {
    await manager.query(REDELIVER, [subscriptionId, deliveryId]);
  }

  /** Word to the dispatchers that there is something to do, once it is committed. */
  async asked(subscriptionId: number): Promise<void> {
    await this.hints.about(subscriptionId);
  }

  /**
   * Plans a delivery for each of the store's public events of that time that are still kept, under their
   * old ids, also those from before the subscription was made or while it was disabled.
   * @returns how many there are
   */
  async replay(
    manager: EntityManager,
    { subscriptionId, accountId, from, to, types, last }: Replay,
  ): Promise<number> {
    const [matched]: { n: number }[] = await manager.query(MATCHED, [
      accountId,
      from,
      to,
      types,
      last,
    ]);
    if (!matched?.n) return 0;
    await manager.query(REPLAY, [subscriptionId, accountId, from, to, types, last]);
    return matched.n;
  }

  /** Where replays that are asked for now end: the events that are planned later come by themselves. */
  async replayBound(): Promise<number> {
    const [bound] = await ask<{ last: number }>(this.pool, {
      name: 'webhook_replay_bound',
      text: 'select webhook_next_id() as last',
    });
    if (!bound) throw new Error('a sequence gives an id');
    return bound.last;
  }
}
