import type { DisabledReason } from '#outbound/subscriptions/webhook-subscription.js';
import type { Delivery } from './delivery.js';
import { insertFinished } from './finish-statement.js';

export const GIVE_UP_BATCH_SIZE = 500;
/** Per queue. */
const REDELIVERIES_BATCH_SIZE = 64;

export type ViewRow = {
  id: null;
  subscriptionId: number;
  enqueued_count: number;
  has_redelivery: boolean;
  target_url: string | null;
  secret: Buffer;
  previous_secret: Buffer | null;
  headers: Buffer | null;
  personal_data: boolean;
  enabled: boolean;
  disabled_reason: DisabledReason | null;
  give_up_before: Date | null;
  failing_since: Date | null;
};

export type DeliveryRow = Omit<Delivery, 'manual' | 'body' | 'readAt'>;

/** SQL over `p`, a pending delivery: the columns of a `DeliveryRow`. */
export const DELIVERY_COLUMNS = `p.id, p.subscription_id as "subscriptionId", p.account_id as "accountId",
  p.customer_id as "customerId", p.stream, p.event_seq as "eventSeq", p.event_id as "eventId", p.type,
  p.payload_format as "payloadFormat", p.tries, p.first_attempt_at as "firstAttemptAt",
  p.created_at as "createdAt", p.next_attempt_at as "dueAt", 0 as "redeliveryId"`;

export type LoadedRow = ViewRow | DeliveryRow;

/**
 * Renders SQL over `requested`, queues with their `enqueued_count`: the state of each, and deliveries of it.
 * @param deliveries SQL of `DELIVERY_COLUMNS`
 */
export const renderLoaded = (deliveries: string): string => `
    select p.*, null as enqueued_count, null as target_url, null as secret, null as previous_secret, null as headers,
      null as personal_data, null as enabled, null as disabled_reason, null as give_up_before, null as failing_since,
      null as has_redelivery
    from (${deliveries}) p
    union all
    select null, w.subscription_id, null, null, null, null, null, null, null, null, null, null, null, null,
      w.enqueued_count, s.target_url, s.secret, case when s.previous_secret_until > now() then s.previous_secret end,
      s.headers, s.personal_data, s.enabled, s.disabled_reason, s.give_up_before, s.failing_since,
      exists (select from webhook_redeliveries r where r.subscription_id = w.subscription_id)
    from requested w
    left join webhook_subscriptions s on s.id = w.subscription_id`;

/**
 * The state of each queue that this process still leases, the first attempts in it in order, and its due retries. In one
 * statement, so that work which is not in the result is not counted in its `enqueued_count` either.
 */
export const LOAD = {
  name: 'webhook_load',
  text: `
    with requested as (
      select w.*, q.enqueued_count
      from unnest($2::bigint[], $3::bigint[], $4::int[], $5::int[]) as w (subscription_id, after, room, skip)
      join webhook_queues q on q.subscription_id = w.subscription_id and q.dispatcher_id = $1
    )
    ${renderLoaded(`
      select p.* from requested w
      cross join lateral (
        (select ${DELIVERY_COLUMNS} from webhook_pending p
         where p.subscription_id = w.subscription_id and p.tries = 0 and p.id > w.after
         order by p.id limit w.room)
        union all
        (select ${DELIVERY_COLUMNS} from webhook_pending p
         where p.subscription_id = w.subscription_id and p.tries > 0 and p.next_attempt_at <= now()
         order by p.next_attempt_at limit w.room + w.skip)
      ) p`)}`,
};

export const TAKE_REDELIVERIES = {
  name: 'webhook_take_redeliveries',
  text: `
    select d.id, d.subscription_id as "subscriptionId", d.account_id as "accountId", d.customer_id as "customerId",
      '' as stream, d.event_seq as "eventSeq", d.event_id as "eventId", d.type, d.payload_format as "payloadFormat",
      0 as tries, null::timestamptz as "firstAttemptAt", d.created_at as "createdAt",
      r.created_at as "dueAt", r.id as "redeliveryId"
    from unnest($1::bigint[]) as w (subscription_id)
    cross join lateral (
      select * from webhook_redeliveries x
      where x.subscription_id = w.subscription_id order by x.id limit ${REDELIVERIES_BATCH_SIZE}
    ) r
    join webhook_deliveries d on d.subscription_id = r.subscription_id and d.id = r.delivery_id`,
};

/** Requests whose delivery was dropped with its day. */
export const FORGET_REDELIVERIES = {
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
export const GIVE_UP = {
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

/** Copies a row, since one of so many columns is large, and becomes a hash table of kilobytes when a field is added. */
export function toDelivery(row: DeliveryRow): Delivery {
  return {
    id: row.id,
    subscriptionId: row.subscriptionId,
    accountId: row.accountId,
    customerId: row.customerId,
    stream: row.stream,
    eventSeq: row.eventSeq,
    eventId: row.eventId,
    type: row.type,
    payloadFormat: row.payloadFormat,
    tries: row.tries,
    manual: row.redeliveryId !== 0,
    firstAttemptAt: row.firstAttemptAt,
    createdAt: row.createdAt,
    dueAt: row.dueAt,
    redeliveryId: row.redeliveryId,
    body: 'unrendered',
    readAt: 0,
  };
}
