import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { createId } from '#kernel/randomness.js';
import { WebhookSecrets } from '#sending/webhook-secrets.service.js';
import type { Pace } from './delivery-lane.js';
import { DeliveryMetrics } from './delivery-metrics.service.js';
import { LEASED_UNTIL, VIEW_COLUMNS, type ViewRow } from './lane-view.js';
import type { Hold, LaneView } from './owned-lane.js';

/** A lane with a delivery that could not be processed comes back after this long. */
const AFTER_TROUBLE_SECONDS = 30;
/** A dispatcher that has not been seen for this long no longer counts when lanes are shared out. */
const GONE_SECONDS = 12;

export type Release = {
  subscriptionId: number;
  planned: number;
  pace: Pace;
  hold: Hold;
};

/** `taken_over`: the lease had run out, because the owner has died or could not renew it. */
type ClaimedRow = { subscription_id: number; pace: Pace; taken_over: boolean };

/** Claims lanes, not deliveries: it costs one write per lane, however long its queue is. */
const CLAIM = {
  name: 'webhook_queues_claim',
  text: `
    with due as (
      select subscription_id, dispatcher_id is not null as taken_over from webhook_queues
      where due_at <= now() and due_at < 'infinity'
      order by due_at limit $2 for update skip locked
    )
    update webhook_queues l set dispatcher_id = $1, due_at = ${LEASED_UNTIL}
    from due where l.subscription_id = due.subscription_id
    returning l.subscription_id, l.tier as pace, due.taken_over`,
};

const NEXT_DUE = {
  name: 'webhook_queues_next',
  text: `select (extract(epoch from min(due_at) - now()) * 1000)::float8 as ms
         from webhook_queues where due_at > now() and due_at < 'infinity'`,
};

/** Returns only the lanes that this process still owns. */
const VIEWS = {
  name: 'webhook_queues_view',
  text: `
    select ${VIEW_COLUMNS}
    from webhook_queues l
    left join webhook_subscriptions s on s.id = l.subscription_id
    where l.subscription_id = any ($2) and l.dispatcher_id = $1`,
};

/**
 * Computes when each lane is next due in the same statement that releases it, so that nothing added meanwhile is
 * missed.
 */
const RELEASE = {
  name: 'webhook_queues_release',
  text: `
    with mine as (
      select l.subscription_id, r.pace, r.hold
      from webhook_queues l
      join unnest($2::bigint[], $3::bigint[], $4::text[], $5::text[]) as r (subscription_id, planned, pace, hold)
        on r.subscription_id = l.subscription_id and r.planned = l.enqueued
      where l.dispatcher_id = $1
      order by l.subscription_id for no key update of l
    )
    update webhook_queues l set dispatcher_id = null, tier = mine.pace, due_at = case mine.hold
      when 'parked' then 'infinity'
      when 'trouble' then now() + interval '${AFTER_TROUBLE_SECONDS} seconds'
      else least(
        (select now() from webhook_pending p
         where p.subscription_id = l.subscription_id and p.tries = 0 limit 1),
        (select p.next_attempt_at from webhook_pending p
         where p.subscription_id = l.subscription_id and p.tries > 0
         order by p.next_attempt_at limit 1),
        (select now() from webhook_redeliveries r where r.subscription_id = l.subscription_id limit 1),
        'infinity') end
    from mine where l.subscription_id = mine.subscription_id
    returning l.subscription_id`,
};

const RENEW = {
  name: 'webhook_queues_renew',
  text: `
    with mine as (
      select subscription_id from webhook_queues where dispatcher_id = $1
      order by subscription_id for no key update
    )
    update webhook_queues l set due_at = ${LEASED_UNTIL}
    from mine where l.subscription_id = mine.subscription_id
    returning l.subscription_id`,
};

const PRESENT = {
  name: 'webhook_dispatchers_present',
  text: `
    with seen as (
      insert into webhook_dispatchers (id, seen_at) values ($1, now())
      on conflict (id) do update set seen_at = now()
    ), forgotten as (
      delete from webhook_dispatchers where seen_at < now() - interval '5 minutes'
    )
    select (select count(*) from webhook_dispatchers
            where id <> $1 and seen_at > now() - interval '${GONE_SECONDS} seconds') as others,
      (select count(*) from webhook_queues where dispatcher_id is not null) as owned`,
};

const FORGET_LANE = {
  name: 'webhook_lane_forget',
  text: `
    with forgotten as (delete from webhook_redeliveries where subscription_id = $2)
    delete from webhook_queues l where l.subscription_id = $2 and l.dispatcher_id = $1 and l.enqueued = $3`,
};

/** Which process sends for which subscription. When a process dies, its lanes become due again as their leases end. */
@Injectable()
export class LaneLeases {
  /** Identifies this process among all dispatchers. */
  readonly me = createId();

  constructor(
    private readonly pool: Pool,
    private readonly secrets: WebhookSecrets,
    private readonly metrics: DeliveryMetrics,
  ) {}

  async claim(limit: number): Promise<{ subscriptionId: number; pace: Pace }[]> {
    const { rows } = await this.metrics.statement(
      'claim',
      () => this.pool.query<ClaimedRow>({ ...CLAIM, values: [this.me, limit] }),
      (answer) => answer.rows.length,
    );
    this.metrics.claimed(rows.length, rows.filter((row) => row.taken_over).length);
    return rows.map((row) => ({ subscriptionId: row.subscription_id, pace: row.pace }));
  }

  /** How long until the next lane becomes due or the next lease ends. */
  async millisecondsToNext(): Promise<number | undefined> {
    const { rows } = await this.pool.query<{ ms: number | null }>(NEXT_DUE);
    return rows[0]?.ms ?? undefined;
  }

  /**
   * Only of lanes that this process still owns. Call it before `take`: work added later then raises `planned` above
   * what is known.
   */
  async views(subscriptionIds: number[]): Promise<LaneView[]> {
    const { rows } = await this.pool.query<ViewRow>({
      ...VIEWS,
      values: [this.me, subscriptionIds],
    });
    return rows.map((row) => this.viewOf(row));
  }

  /** @returns the lanes that were released; the others have new work or another owner */
  async release(lanes: Release[]): Promise<Set<number>> {
    const { rows } = await this.pool.query<{ subscription_id: number }>({
      ...RELEASE,
      values: [
        this.me,
        lanes.map((lane) => lane.subscriptionId),
        lanes.map((lane) => lane.planned),
        lanes.map((lane) => lane.pace),
        lanes.map((lane) => lane.hold),
      ],
    });
    return new Set(rows.map((row) => row.subscription_id));
  }

  /** Renews every lease of this process. @returns the lanes that it still owns */
  async renew(): Promise<Set<number>> {
    const { rows } = await this.pool.query<{ subscription_id: number }>({
      ...RENEW,
      values: [this.me],
    });
    return new Set(rows.map((row) => row.subscription_id));
  }

  /** @returns the number of other dispatchers, and of lanes that all of them own together */
  async present(): Promise<{ others: number; owned: number }> {
    const { rows } = await this.pool.query<{ others: number; owned: number }>({
      ...PRESENT,
      values: [this.me],
    });
    return rows[0] ?? { others: 0, owned: 0 };
  }

  async leave(): Promise<void> {
    await this.pool.query('delete from webhook_dispatchers where id = $1', [this.me]);
  }

  /**
   * Removes the lane of a deleted subscription that is empty.
   * @returns false when something was added since it was viewed, so that it must be looked at again
   */
  async forget(subscriptionId: number, planned: number): Promise<boolean> {
    const { rowCount } = await this.pool.query({
      ...FORGET_LANE,
      values: [this.me, subscriptionId, planned],
    });
    return rowCount === 1;
  }

  viewOf(row: ViewRow): LaneView {
    const { subscription_id: subscriptionId, planned, redelivery } = row;
    const opened = (sealed: Buffer) => this.secrets.open(subscriptionId, sealed);
    const target = row.target_url !== null && {
      url: row.target_url,
      secret: opened(row.secret),
      previousSecret: (row.previous_secret && opened(row.previous_secret)) ?? undefined,
      enabled: row.enabled,
      disabledReason: row.disabled_reason,
      giveUpBefore: row.give_up_before,
      failingSince: row.failing_since,
    };
    return { subscriptionId, planned, redelivery, target: target || undefined };
  }
}
