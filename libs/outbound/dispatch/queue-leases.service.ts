import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { announceDue, ProcessSession } from '#platform/database/process-session.js';
import type { QueuedDelivery } from './delivery.js';
import type { DeliveryQueue, QueueState, Tier } from './delivery-queue.js';
import { DeliveryMetrics } from './delivery-metrics.service.js';
import { LEASE_END } from './enqueue-statement.js';

const QUEUES = 'webhook_queues';

/** A queue with a delivery that could not be processed comes back after this long. */
const BACKOFF_SECONDS = 30;

/** `paused`: nothing may be sent until the subscription changes. `backoff`: not before a while. */
type Hold = 'none' | 'paused' | 'backoff';

const HOLDS: { [state in QueueState]?: Hold } = { paused: 'paused', 'backing-off': 'backoff' };

/** `taken_over`: the lease has ended, because the owner has died or could not renew it. */
type ClaimedRow = { subscription_id: number; tier: Tier; taken_over: boolean };

/** Claims queues, not deliveries: it costs one write per queue, however long its queue is. */
const CLAIM = {
  name: 'webhook_queues_claim',
  text: `
    with due as (
      select subscription_id, dispatcher_id is not null as taken_over from webhook_queues
      where due_at <= now() and due_at < 'infinity'
      order by due_at limit $2 for update skip locked
    )
    update webhook_queues q set dispatcher_id = $1, due_at = ${LEASE_END}
    from due where q.subscription_id = due.subscription_id
    returning q.subscription_id, q.tier, due.taken_over`,
};

/** Also finds what became due after the last claim. */
const NEXT_DUE = {
  name: 'webhook_queues_next',
  text: `select (extract(epoch from min(due_at) - now()) * 1000)::float8 as ms
         from webhook_queues where due_at > now() - interval '1 second' and due_at < 'infinity'`,
};

/**
 * Computes when each queue is next due in the same statement that releases it, so that nothing added meanwhile is
 * missed. Other dispatchers are told of what is due at once.
 */
const RELEASE = {
  name: 'webhook_queues_release',
  text: `
    with mine as (
      select q.subscription_id, r.tier, r.hold
      from webhook_queues q
      join unnest($2::bigint[], $3::bigint[], $4::text[], $5::text[]) as r (subscription_id, enqueued_count, tier, hold)
        on r.subscription_id = q.subscription_id and r.enqueued_count = q.enqueued_count
      where q.dispatcher_id = $1
      order by q.subscription_id for no key update of q
    ), released as (
      update webhook_queues q set dispatcher_id = null, tier = mine.tier, due_at = case mine.hold
        when 'paused' then 'infinity'
        when 'backoff' then now() + interval '${BACKOFF_SECONDS} seconds'
        else least(
          (select now() from webhook_pending p
           where p.subscription_id = q.subscription_id and p.tries = 0 limit 1),
          (select p.next_attempt_at from webhook_pending p
           where p.subscription_id = q.subscription_id and p.tries > 0
           order by p.next_attempt_at limit 1),
          (select now() from webhook_redeliveries r where r.subscription_id = q.subscription_id limit 1),
          'infinity') end
      from mine where q.subscription_id = mine.subscription_id
      returning q.subscription_id, q.due_at
    ), announced as (
      select ${announceDue(QUEUES)} from released where due_at <= now() limit 1
    )
    select r.subscription_id, case when r.due_at < 'infinity'
      then (extract(epoch from r.due_at - clock_timestamp()) * 1000)::float8 end as due_in_ms
    from released r left join announced on true`,
};

const RENEW = {
  name: 'webhook_queues_renew',
  text: `
    with mine as (
      select subscription_id from webhook_queues where dispatcher_id = $1
      order by subscription_id for no key update
    )
    update webhook_queues q set due_at = ${LEASE_END}
    from mine where q.subscription_id = mine.subscription_id
    returning q.subscription_id`,
};

const COUNT_LEASED = {
  name: 'webhook_queues_count_leased',
  text: 'select count(*)::int as leased_count from webhook_queues where dispatcher_id is not null',
};

const FORGET_QUEUE = {
  name: 'webhook_queue_forget',
  text: `
    with forgotten as (delete from webhook_redeliveries where subscription_id = $2)
    delete from webhook_queues q where q.subscription_id = $2 and q.dispatcher_id = $1 and q.enqueued_count = $3`,
};

/**
 * Leases queues to this process. Their leases end with the process, and its queues are due again. Those of a process that
 * falls silent run out, or end after 20 s with its session (ADR-0100).
 */
@Injectable()
export class QueueLeases {
  constructor(
    private readonly pool: Pool,
    private readonly metrics: DeliveryMetrics,
    private readonly session: ProcessSession,
  ) {
    session.addLeases({ name: QUEUES, holder: 'dispatcher_id', endsAt: 'due_at' });
  }

  /** Identifies this process among all dispatchers; null before its first session, when it owns nothing. */
  get dispatcherId(): number | null {
    return this.session.number;
  }

  /** @returns the tiers of the queues, by subscription id */
  async claim(limit: number): Promise<Map<number, Tier>> {
    const { rows } = await this.metrics.timeStatement(
      'claim',
      () => this.pool.query<ClaimedRow>({ ...CLAIM, values: [this.dispatcherId, limit] }),
      (result) => result.rows.length,
    );
    this.metrics.countClaimed(rows.length, rows.filter((row) => row.taken_over).length);
    return new Map(rows.map((row) => [row.subscription_id, row.tier]));
  }

  /** How long until the next queue becomes due or the next lease ends. */
  async findMsToNext(): Promise<number | undefined> {
    const { rows } = await this.pool.query<{ ms: number | null }>(NEXT_DUE);
    return rows[0]?.ms ?? undefined;
  }

  /** Registers a function that is called when the leases of a dead process were ended, or queues were released. */
  onDue(listener: () => void): void {
    this.session.onDue(QUEUES, listener);
  }

  /**
   * @returns in how many milliseconds each queue that was released is due, `Infinity` if there is nothing in it; the others
   * have new work or another dispatcher
   */
  async release(queues: DeliveryQueue<QueuedDelivery>[]): Promise<Map<number, number>> {
    const { rows } = await this.pool.query<{ subscription_id: number; due_in_ms: number | null }>({
      ...RELEASE,
      values: [
        this.dispatcherId,
        queues.map((queue) => queue.id),
        queues.map((queue) => queue.enqueuedCount),
        queues.map((queue) => queue.tier),
        queues.map(({ state }) => HOLDS[state] ?? 'none'),
      ],
    });
    return new Map(rows.map((row) => [row.subscription_id, row.due_in_ms ?? Infinity]));
  }

  /** Renews every lease of this process. @returns the queues that it still owns */
  async renew(): Promise<Set<number>> {
    const { rows } = await this.pool.query<{ subscription_id: number }>({
      ...RENEW,
      values: [this.dispatcherId],
    });
    return new Set(rows.map((row) => row.subscription_id));
  }

  /** Counts the queues that all dispatchers lease. */
  async countLeased(): Promise<number> {
    const { rows } = await this.pool.query<{ leased_count: number }>(COUNT_LEASED);
    return rows[0]?.leased_count ?? 0;
  }

  /**
   * Removes the queue of a deleted subscription that is empty.
   * @returns false when something was added since it was viewed, so that it must be looked at again
   */
  async deleteQueue(subscriptionId: number, enqueuedCount: number): Promise<boolean> {
    const { rowCount } = await this.pool.query({
      ...FORGET_QUEUE,
      values: [this.dispatcherId, subscriptionId, enqueuedCount],
    });
    return rowCount === 1;
  }
}
