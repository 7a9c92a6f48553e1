import {
  getError,
  getHttpStatus,
  wasTried,
  type AttemptResult,
} from '#outbound/sending/outcome.js';
import { renderLastDelivery, type FollowUp } from '#outbound/subscriptions/webhook-delivery.js';
import type { Delivery } from './delivery.js';

/**
 * SQL over `s`, a subscription: sets `updated_at` where it is disabled because of its receiver (HOOK-67). It is later than
 * before, even if the clocks of the database and of the api that has written it last are apart.
 */
export const MOVE_UPDATED_AT =
  "updated_at = greatest(now(), s.updated_at + interval '1 millisecond')";

/** An attempt, or the reason why there was none, and what follows from it. */
export type Result = {
  delivery: Delivery;
  attempted: AttemptResult;
  /** Of a manual attempt, only `delivered` and what happens to the subscription count. */
  next: FollowUp;
};

/** @property excerpt of the response, sealed */
export type SealedResult = Result & { excerpt: Buffer | null };

/**
 * SQL that stores deliveries taken out of `webhook_pending` as finished.
 * @param from an SQL relation of them @param columns more of its columns that are stored
 */
export const insertFinished = (
  from: string,
  { status, attempts, deliveredAt }: Record<'status' | 'attempts' | 'deliveredAt', string>,
  columns = '',
): string => `insert into webhook_finished (id, subscription_id, event_seq, event_id, account_id, customer_id, type,
        payload_format, status, attempts_count, created_at, delivered_at${columns})
      select id, subscription_id, event_seq, event_id, account_id, customer_id, type, payload_format,
        ${status}, ${attempts}, created_at, ${deliveredAt}${columns} from ${from}`;

/**
 * Can only be looked up by index. For plain equality PostgreSQL may read the whole queue instead: statistics that were
 * taken while it was empty say that this is the same.
 */
const IS_SAME_DELIVERY =
  'p.subscription_id = any (array[r.subscription_id]) and p.id = any (array[r.id])';

/**
 * SQL: a column of the latest of several attempts. Without a join, for which PostgreSQL would compare each subscription with
 * all attempts, as it expects one.
 */
const renderLatest = (column: string): string =>
  `(array_agg(${column} order by at desc, n desc))[1] as ${column}`;

/**
 * Records scheduled attempts, and returns the numbers of those that do not count. A success always counts, even if the
 * queue has been lost meanwhile; any other result counts only if nobody has recorded that attempt before. What does not
 * count changes nothing, of the subscription either. Never changes updated_at (HOOK-67).
 */
export const FINISH = {
  name: 'webhook_finish',
  text: `
    with r as (
      select n, subscription_id, id, tries, status, sent, code, duration_ms, error, excerpt,
        to_timestamp(next_attempt_at / 1000.0) as next_attempt_at, to_timestamp(at / 1000.0) as at,
        to_timestamp((at + duration_ms) / 1000.0) as done_at
      from unnest($1::bigint[], $2::bigint[], $3::int[], $4::text[], $5::float8[], $6::float8[], $7::boolean[],
        $8::int[], $9::int[], $10::text[], $11::bytea[])
      with ordinality
      as r (subscription_id, id, tries, status, next_attempt_at, at, sent, code, duration_ms, error, excerpt, n)
    ), gone as (
      delete from webhook_pending p using r
      where ${IS_SAME_DELIVERY} and r.status <> 'pending'
        and (p.tries = r.tries or r.status = 'delivered')
      returning p.*, r.n, r.status, r.done_at, case when r.sent then p.attempts_count + 1 end as attempt,
        r.at as attempted_at, r.code as response_status, r.duration_ms, r.error, r.excerpt as response_excerpt
    ), finished as (
      ${insertFinished(
        'gone',
        {
          status: 'status',
          attempts: 'coalesce(attempt, attempts_count)',
          deliveredAt: "case when status = 'delivered' then done_at end",
        },
        ', attempt, attempted_at, response_status, duration_ms, error, response_excerpt',
      )}
    ), again as (
      update webhook_pending p set tries = p.tries + 1, attempts_count = p.attempts_count + r.sent::int,
        first_attempt_at = coalesce(p.first_attempt_at, r.at), next_attempt_at = r.next_attempt_at
      from r
      where ${IS_SAME_DELIVERY} and r.status = 'pending'
        and p.tries = r.tries
      returning r.*, p.attempts_count
    ), attempts as (
      insert into webhook_other_attempts
        (subscription_id, delivery_id, attempt, kind, at, status, duration_ms, error, response_excerpt)
      select subscription_id, id, attempts_count, 'scheduled', at, code, duration_ms, error, excerpt
      from again where sent
    ), counted as (
      select n, subscription_id, status, done_at, attempted_at as at, response_status as code, error,
        attempt is not null as sent
      from gone
      union all
      select n, subscription_id, status, done_at, at, code, error, sent from again
    ), changes as (
      select subscription_id, max(done_at) filter (where status = 'delivered') as succeeded_at,
        array_agg(done_at) filter (where status <> 'delivered') as failed_at,
        ${renderLatest('at')}, ${renderLatest('code')}, ${renderLatest('error')}
      from counted where sent group by subscription_id
    ), subscriptions as (
      update webhook_subscriptions s
      set healthy_at = greatest(s.healthy_at, x.succeeded_at),
        failing_since = coalesce(
          case when s.failing_since > x.succeeded_at or x.succeeded_at is null then s.failing_since end,
          (select min(f) from unnest(x.failed_at) f
           where f > coalesce(greatest(s.healthy_at, x.succeeded_at), '-infinity'))),
        ${renderLastDelivery({ at: 'x.at', status: 'x.code', error: 'x.error' })}
      from changes x
      where s.id = x.subscription_id
    )
    select n::int from r where n not in (select n from counted)`,
};

export function toFinishArguments(results: SealedResult[]): unknown[] {
  return [
    toArrayLiteral(results, ({ delivery }) => delivery.subscriptionId),
    toArrayLiteral(results, ({ delivery }) => delivery.id),
    toArrayLiteral(results, ({ delivery }) => delivery.tries),
    toArrayLiteral(results, ({ next }) => next.delivery.status),
    toArrayLiteral(results, ({ next }) =>
      next.delivery.status === 'pending' ? next.delivery.nextAttemptAt.getTime() : null,
    ),
    toArrayLiteral(results, ({ attempted }) => attempted.at.getTime()),
    toArrayLiteral(results, ({ attempted }) => wasTried(attempted.outcome)),
    toArrayLiteral(results, ({ attempted }) => getHttpStatus(attempted.outcome)),
    toArrayLiteral(results, ({ attempted }) => attempted.durationMs),
    results.map(({ attempted }) => getError(attempted.outcome)),
    results.map(({ excerpt }) => excerpt),
  ];
}

/**
 * An array literal in PostgreSQL's own notation: the driver's conversion of each value is too slow for thousands a
 * second.
 */
function toArrayLiteral<T>(
  items: T[],
  value: (item: T) => number | boolean | FollowUp['delivery']['status'] | null,
): string {
  return `{${items.map((item) => value(item) ?? 'null').join()}}`;
}
