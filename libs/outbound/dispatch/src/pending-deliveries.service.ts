import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import type { PayloadFormat } from '#public-events/public-event.js';
import { withPartitions } from '#public-events/webhook-partitions.service.js';
import { WebhookSecrets } from '#sending/webhook-secrets.service.js';
import type { DisabledReason } from '#subscriptions/webhook-subscription.js';
import type { Delivery, QueueView } from './delivery.js';
import { DeliveryMetrics } from './delivery-metrics.service.js';
import type { LoadRequest } from './delivery-queue.js';
import { insertFinished } from './finish-statement.js';

const GIVE_UP_BATCH_SIZE = 500;
/** Per queue. */
const REDELIVERIES_BATCH_SIZE = 64;

type ViewRow = {
  id: null;
  subscription_id: number;
  enqueued: number;
  has_redelivery: boolean;
  target_url: string | null;
  secret: Buffer;
  previous_secret: Buffer | null;
  enabled: boolean;
  disabled_reason: DisabledReason | null;
  give_up_before: Date | null;
  failing_since: Date | null;
};

type DeliveryRow = {
  id: number;
  subscription_id: number;
  account_id: number;
  customer_id: number;
  stream: string;
  event_seq: number;
  event_id: string;
  type: string;
  payload_format: PayloadFormat;
  tries: number;
  first_attempt_at: Date | null;
  created_at: Date;
  due_at: Date;
  redelivery_id: number;
};

const DELIVERY_COLUMNS = `p.id, p.subscription_id, p.account_id, p.customer_id, p.stream, p.event_seq,
  p.event_id, p.type, p.payload_format, p.tries, p.first_attempt_at, p.created_at, p.next_attempt_at as due_at,
  0 as redelivery_id`;

/**
 * The state of each queue that this process still leases, the first attempts in it in order, and its due retries. In one
 * statement, so that work which is not in the result is not counted in its `enqueued` either.
 */
const LOAD = {
  name: 'webhook_load',
  text: `
    with requested as (
      select w.*, l.enqueued
      from unnest($2::bigint[], $3::bigint[], $4::int[], $5::int[]) as w (subscription_id, after, room, skip)
      join webhook_queues l on l.subscription_id = w.subscription_id and l.dispatcher_id = $1
    )
    select null as id, w.subscription_id, null as account_id, null as customer_id, null as stream, null as event_seq,
      null as event_id, null as type, null as payload_format, null as tries, null as first_attempt_at,
      null as created_at, null as due_at, null as redelivery_id,
      w.enqueued, s.target_url, s.secret,
      case when s.previous_secret_until > now() then s.previous_secret end as previous_secret,
      s.enabled, s.disabled_reason, s.give_up_before, s.failing_since,
      exists (select from webhook_redeliveries r where r.subscription_id = w.subscription_id) as has_redelivery
    from requested w
    left join webhook_subscriptions s on s.id = w.subscription_id
    union all
    select p.*, null, null, null, null, null, null, null, null, null
    from requested w
    cross join lateral (
      (select ${DELIVERY_COLUMNS} from webhook_pending p
       where p.subscription_id = w.subscription_id and p.tries = 0 and p.id > w.after
       order by p.id limit w.room)
      union all
      (select ${DELIVERY_COLUMNS} from webhook_pending p
       where p.subscription_id = w.subscription_id and p.tries > 0 and p.next_attempt_at <= now()
       order by p.next_attempt_at limit w.room + w.skip)
    ) p`,
};

const TAKE_REDELIVERIES = {
  name: 'webhook_take_redeliveries',
  text: `
    select d.id, d.subscription_id, d.account_id, d.customer_id, '' as stream,
      d.event_seq, d.event_id, d.type, d.payload_format, 0 as tries, null::timestamptz as first_attempt_at, d.created_at, r.created_at as due_at,
      r.id as redelivery_id
    from unnest($1::bigint[]) as w (subscription_id)
    cross join lateral (
      select * from webhook_redeliveries x
      where x.subscription_id = w.subscription_id order by x.id limit ${REDELIVERIES_BATCH_SIZE}
    ) r
    join webhook_deliveries d on d.subscription_id = r.subscription_id and d.id = r.delivery_id`,
};

/** Requests whose delivery was dropped with its day. */
const FORGET_REDELIVERIES = {
  name: 'webhook_redeliveries_forget',
  text: `
    delete from webhook_redeliveries r where r.subscription_id = any ($1) and not exists (
      select from webhook_deliveries d
      where d.subscription_id = r.subscription_id and d.id = r.delivery_id)`,
};

/**
 * Fails, without an attempt, what was enqueued too long ago or before the end of its subscription. One that was enabled
 * again since its end was seen gets new ones, which must not be failed with the old ones.
 */
const GIVE_UP = {
  name: 'webhook_give_up',
  text: `
    with gone as (
      delete from webhook_pending p
      where p.subscription_id = $1 and p.id in (
        select id from webhook_pending where subscription_id = $1 and created_at < $2 and ($2 < 'infinity'
          or not exists (select from webhook_subscriptions
            where id = $1 and (enabled or disabled_reason = 'disabled_by_user')))
        order by id limit ${GIVE_UP_BATCH_SIZE})
      returning p.*
    ), failed as (
      ${insertFinished('gone', {
        status: "'failed'",
        attempts: 'attempts_count',
        deliveredAt: 'null::timestamptz',
      })}
      where exists (select from webhook_subscriptions where id = $1)
    )
    select count(*) as n from gone`,
};

/** Loads the deliveries still to be sent, which only the dispatcher that leases a queue does, or fails them. */
@Injectable()
export class PendingDeliveries {
  constructor(
    private readonly pool: Pool,
    private readonly metrics: DeliveryMetrics,
    private readonly secrets: WebhookSecrets,
  ) {}

  /** @returns nothing of queues that belong to another dispatcher by now */
  async load(
    dispatcherId: string,
    requests: Omit<LoadRequest, 'state'>[],
  ): Promise<{ views: Map<number, QueueView>; deliveries: Delivery[] }> {
    const values = [
      dispatcherId,
      requests.map((one) => one.subscriptionId),
      requests.map((one) => one.after),
      requests.map((one) => one.room),
      requests.map((one) => one.skip),
    ];
    const views = new Map<number, QueueView>();
    const deliveries: Delivery[] = [];
    await this.metrics.timeStatement(
      'take',
      async () => {
        const { rows } = await this.pool.query<ViewRow | DeliveryRow>({ ...LOAD, values });
        for (const row of rows) {
          if (row.id === null) views.set(row.subscription_id, this.toQueueView(row));
          else deliveries.push(toDelivery(row));
        }
      },
      () => deliveries.length,
    );
    return { views, deliveries };
  }

  async takeRedeliveries(subscriptionIds: number[]): Promise<Delivery[]> {
    await this.pool.query({ ...FORGET_REDELIVERIES, values: [subscriptionIds] });
    const { rows } = await this.pool.query<DeliveryRow>({
      ...TAKE_REDELIVERIES,
      values: [subscriptionIds],
    });
    return rows.map(toDelivery);
  }

  /** Fails some of what was enqueued before then. @returns whether there may be more */
  async giveUp(subscriptionId: number, before: Date | 'infinity'): Promise<boolean> {
    return withPartitions(this.pool, async () => {
      const { rows } = await this.pool.query<{ n: number }>({
        ...GIVE_UP,
        values: [subscriptionId, before],
      });
      this.metrics.countGivenUp(rows[0]?.n ?? 0);
      return rows[0]?.n === GIVE_UP_BATCH_SIZE;
    });
  }

  private toQueueView(row: ViewRow): QueueView {
    const { subscription_id: subscriptionId, enqueued, has_redelivery: hasRedelivery } = row;
    const open = (sealed: Buffer) => this.secrets.open(subscriptionId, sealed);
    const target = row.target_url !== null && {
      url: row.target_url,
      secret: open(row.secret),
      previousSecret: (row.previous_secret && open(row.previous_secret)) ?? undefined,
      enabled: row.enabled,
      disabledReason: row.disabled_reason,
      giveUpBefore: row.give_up_before,
      failingSince: row.failing_since,
    };
    return { subscriptionId, enqueued, hasRedelivery, target: target || undefined };
  }
}

function toDelivery(row: DeliveryRow): Delivery {
  return {
    id: row.id,
    subscriptionId: row.subscription_id,
    accountId: row.account_id,
    customerId: row.customer_id,
    stream: row.stream,
    eventSeq: row.event_seq,
    eventId: row.event_id,
    type: row.type,
    payloadFormat: row.payload_format,
    tries: row.tries,
    manual: row.redelivery_id !== 0,
    firstAttemptAt: row.first_attempt_at,
    createdAt: row.created_at,
    dueAt: row.due_at,
    redeliveryId: row.redelivery_id,
  };
}
