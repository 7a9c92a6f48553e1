import {
  getEndedAt,
  getError,
  getHttpStatus,
  wasTried,
  type AttemptResult,
} from '#sending/outcome.js';
import type { FollowUp } from '#subscriptions/webhook-delivery.js';
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

/** SQL that stores deliveries taken out of `webhook_pending` as finished. @param from an SQL relation of them */
export const insertFinished = (
  from: string,
  { status, attempts, deliveredAt }: Record<'status' | 'attempts' | 'deliveredAt', string>,
): string => `insert into webhook_finished (id, subscription_id, event_seq, event_id, account_id, customer_id, type,
        payload_format, status, attempts_count, created_at, delivered_at)
      select id, subscription_id, event_seq, event_id, account_id, customer_id, type, payload_format,
        ${status}, ${attempts}, created_at, ${deliveredAt} from ${from}`;

/**
 * Can only be looked up by index. For plain equality PostgreSQL may read the whole queue instead: statistics that were
 * taken while it was empty say that this is the same.
 */
const IS_SAME_DELIVERY =
  'p.subscription_id = any (array[r.subscription_id]) and p.id = any (array[r.id])';

/**
 * Records scheduled attempts. A success always counts, even if the queue has been lost meanwhile; any other result
 * counts only if nobody has recorded that attempt before. Never changes updated_at (HOOK-67).
 */
export const FINISH = {
  name: 'webhook_finish',
  text: `
    with r as (
      select subscription_id, id, tries, status, sent, code, duration_ms, error, excerpt,
        to_timestamp(next_attempt_at / 1000.0) as next_attempt_at, to_timestamp(at / 1000.0) as at,
        to_timestamp((at + duration_ms) / 1000.0) as done_at
      from unnest($1::bigint[], $2::bigint[], $3::int[], $4::text[], $5::float8[], $6::float8[], $7::boolean[],
        $8::int[], $9::int[], $10::text[], $11::bytea[])
      as r (subscription_id, id, tries, status, next_attempt_at, at, sent, code, duration_ms, error, excerpt)
    ), gone as (
      delete from webhook_pending p using r
      where ${IS_SAME_DELIVERY} and r.status <> 'pending'
        and (p.tries = r.tries or r.status = 'delivered')
      returning p.*, r.status, r.sent, r.done_at
    ), finished as (
      ${insertFinished('gone', {
        status: 'status',
        attempts: 'attempts_count + sent::int',
        deliveredAt: "case when status = 'delivered' then done_at end",
      })}
    ), again as (
      update webhook_pending p set tries = p.tries + 1, attempts_count = p.attempts_count + r.sent::int,
        first_attempt_at = coalesce(p.first_attempt_at, r.at), next_attempt_at = r.next_attempt_at
      from r
      where ${IS_SAME_DELIVERY} and r.status = 'pending'
        and p.tries = r.tries
      returning p.id, p.attempts_count
    ), subscriptions as (
      update webhook_subscriptions s
      set failing_since = case when x.succeeded then to_timestamp(x.failing_since / 1000.0)
                               else coalesce(s.failing_since, to_timestamp(x.failing_since / 1000.0)) end,
        last_delivery_at = to_timestamp(x.at / 1000.0), last_delivery_status = x.code,
        last_delivery_error = x.error
      from unnest($12::bigint[], $13::boolean[], $14::float8[], $15::float8[], $16::int[], $17::text[])
        as x (id, succeeded, failing_since, at, code, error)
      where s.id = x.id
    )
    insert into webhook_attempts (delivery_id, attempt, kind, at, status, duration_ms, error, response_excerpt)
    select r.id, n.attempt, 'scheduled', r.at, r.code, r.duration_ms, r.error, r.excerpt
    from (select id, attempts_count + 1 as attempt from gone
          union all select id, attempts_count from again) n
    join r on r.id = n.id
    where r.sent`,
};

export function toFinishArguments(results: SealedResult[]): unknown[] {
  const states = getSubscriptionChanges(results);
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
    toArrayLiteral(states, ({ id }) => id),
    toArrayLiteral(states, ({ succeeded }) => succeeded),
    toArrayLiteral(states, ({ failingSince }) => failingSince?.getTime() ?? null),
    toArrayLiteral(states, ({ latest }) => latest.attempted.at.getTime()),
    toArrayLiteral(states, ({ latest }) => getHttpStatus(latest.attempted.outcome)),
    states.map(({ latest }) => getError(latest.attempted.outcome)),
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

type SubscriptionChange = {
  id: number;
  /** If any attempt succeeded, `failingSince` is counted from the last success, otherwise from the first failure. */
  succeeded: boolean;
  failingSince: Date | null;
  latest: Result;
};

/** One change per subscription, however many of its attempts are in the group. */
function getSubscriptionChanges(results: SealedResult[]): SubscriptionChange[] {
  const states = new Map<number, SubscriptionChange>();
  for (const result of results) {
    const { delivery, attempted, next } = result;
    if (!wasTried(attempted.outcome)) continue;
    const id = delivery.subscriptionId;
    const state = states.get(id) ?? { id, succeeded: false, failingSince: null, latest: result };
    state.latest = result;
    if (next.delivery.status === 'delivered') {
      state.succeeded = true;
      state.failingSince = null;
    } else state.failingSince ??= getEndedAt(attempted);
    states.set(id, state);
  }
  return [...states.values()];
}
