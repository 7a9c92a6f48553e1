import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import type { PayloadFormat } from '#public-events/public-event.js';
import { withPartitions } from '#public-events/webhook-partitions.service.js';
import type { Delivery } from './delivery.js';
import { DeliveryMetrics } from './delivery-metrics.service.js';
import { insertFinished } from './finished-deliveries.js';
import type { RefillRequest } from './leased-queue.js';

const GIVE_UP_BATCH_SIZE = 500;
/** Per queue. */
const REDELIVERIES_BATCH_SIZE = 64;

type DeliveryRow = {
  id: number;
  subscription_id: number;
  account_id: number;
  customer_id: number;
  /** Empty of a redelivery, to which no order applies. */
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

/** The first attempts of each queue in order, followed by its due retries. */
const TAKE = {
  name: 'webhook_take',
  text: `
    select p.* from unnest($1::bigint[], $2::bigint[], $3::int[], $4::int[])
      as w (subscription_id, after, room, skip)
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

/** The deliveries still to be sent. Only the owner of a queue reads them. */
@Injectable()
export class PendingDeliveries {
  constructor(
    private readonly pool: Pool,
    private readonly metrics: DeliveryMetrics,
  ) {}

  async take(requests: RefillRequest[]): Promise<Delivery[]> {
    const values = [
      requests.map((one) => one.subscriptionId),
      requests.map((one) => one.after),
      requests.map((one) => one.room),
      requests.map((one) => one.skip),
    ];
    const { rows } = await this.metrics.timeStatement(
      'take',
      () => this.pool.query<DeliveryRow>({ ...TAKE, values }),
      (result) => result.rows.length,
    );
    return rows.map(toDelivery);
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
