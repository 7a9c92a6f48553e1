import { isSuccess, wasTried, type Outcome } from '#outbound/sending/outcome.js';

// Decides what follows from one attempt (docs/webhooks.md). Times are passed in; `timeScale` divides every delay, so that
// tests need not wait for four hours.

/** `tries` counts scheduled attempts; manual ones do not change the schedule. */
export type DeliveryState = { tries: number; firstAttemptAt: Date | null };

export type SubscriptionState = { failingSince: Date | null };

export type FollowUp = {
  delivery:
    | { status: 'delivered' }
    | { status: 'failed' }
    | { status: 'cancelled' }
    | { status: 'pending'; nextAttemptAt: Date };
  subscription: { isKept: true; failingSince: Date | null } | EndedSubscription;
};

/** A subscription that was disabled or deleted. */
export type EndedSubscription =
  | { isKept: true; disabled: 'failing' | 'blocked_address'; failingSince: Date | null }
  | { isKept: false };

const MINUTE = 60;
const DELAY_SECONDS = [
  5,
  30,
  2 * MINUTE,
  5 * MINUTE,
  10 * MINUTE,
  20 * MINUTE,
  40 * MINUTE,
  60 * MINUTE,
  100 * MINUTE,
];
const JITTER = 0.1;
const ATTEMPT_SECONDS = 10;
const WINDOW_SECONDS = 4 * 60 * MINUTE;
/** After this long without a success, counted from the first failure, the subscription is disabled. */
export const FAILING_SECONDS = 3 * 24 * 60 * MINUTE;

export const MAX_ATTEMPTS = DELAY_SECONDS.length + 1;

/** Decides what follows from a scheduled attempt. @param random from 0 (inclusive) to 1 (exclusive) */
export function decideAfterAttempt(
  delivery: DeliveryState,
  subscription: SubscriptionState,
  outcome: Outcome,
  now: Date,
  random: number,
  timeScale: number,
): FollowUp {
  if (!wasTried(outcome)) {
    return {
      delivery: decideUnsent(delivery, outcome, now, random, timeScale),
      subscription: { isKept: true, failingSince: subscription.failingSince },
    };
  }
  if (isSuccess(outcome)) {
    return {
      delivery: { status: 'delivered' },
      subscription: { isKept: true, failingSince: null },
    };
  }
  if (outcome.kind === 'responded' && outcome.status === 410) {
    return { delivery: { status: 'cancelled' }, subscription: { isKept: false } };
  }
  const failingSince = subscription.failingSince ?? now;
  if (outcome.kind === 'blocked') {
    return {
      delivery: { status: 'failed' },
      subscription: { isKept: true, disabled: 'blocked_address', failingSince },
    };
  }
  const failingMs = now.getTime() - failingSince.getTime();
  if (failingMs >= (FAILING_SECONDS * 1000) / timeScale) {
    return {
      delivery: { status: 'failed' },
      subscription: { isKept: true, disabled: 'failing', failingSince },
    };
  }
  return {
    delivery: scheduleRetry(delivery, outcome, now, random, timeScale),
    subscription: { isKept: true, failingSince },
  };
}

/** Decides what follows from a manual attempt: only a success and the end of the subscription count. */
export function decideAfterManualAttempt(
  outcome: Outcome,
  subscription: SubscriptionState,
  now: Date,
): { delivered: boolean; subscription: FollowUp['subscription'] } {
  if (isSuccess(outcome)) {
    return { delivered: true, subscription: { isKept: true, failingSince: null } };
  }
  if (outcome.kind === 'responded' && outcome.status === 410) {
    return { delivered: false, subscription: { isKept: false } };
  }
  const { failingSince } = subscription;
  if (outcome.kind === 'blocked') {
    const since = failingSince ?? now;
    return {
      delivered: false,
      subscription: { isKept: true, disabled: 'blocked_address', failingSince: since },
    };
  }
  return { delivered: false, subscription: { isKept: true, failingSince } };
}

/** Tells whether this disables or deletes the subscription, so that nothing more may be sent to it. */
export function endsSubscription(
  subscription: FollowUp['subscription'],
): subscription is EndedSubscription {
  return !subscription.isKept || 'disabled' in subscription;
}

/** Returns the time before which enqueued deliveries fail instead of being sent when a subscription resumes. */
export function getGiveUpBefore(now: Date, timeScale: number): Date {
  return new Date(now.getTime() - (WINDOW_SECONDS * 1000) / timeScale);
}

/**
 * Renders SQL over `s`, a subscription, that stores the result of an attempt unless a later one is stored. The results of
 * several dispatchers, and those of tests, come in any order.
 */
export function renderLastDelivery(to: Record<'at' | 'status' | 'error', string>): string {
  const columns = ['status', 'error', 'at'] as const;
  return columns
    .map((name) => {
      const column = `last_delivery_${name}`;
      return `${column} = case when s.last_delivery_at > ${to.at} then s.${column} else ${to[name]} end`;
    })
    .join(', ');
}

export function getExcerptContext(deliveryId: number): string {
  return `webhook attempts ${deliveryId}`;
}

/** Retries an event that cannot be rendered on the schedule, like a failure, so that it ends and blocks nothing. */
function decideUnsent(
  ...[delivery, outcome, now, random, timeScale]: Parameters<typeof scheduleRetry>
): FollowUp['delivery'] {
  if (outcome.kind === 'missing') return { status: 'failed' };
  return scheduleRetry(delivery, outcome, now, random, timeScale);
}

function scheduleRetry(
  delivery: DeliveryState,
  outcome: Outcome,
  now: Date,
  random: number,
  timeScale: number,
): FollowUp['delivery'] {
  const delaySeconds = DELAY_SECONDS[delivery.tries];
  if (delaySeconds === undefined) return { status: 'failed' };
  const jitteredSeconds = delaySeconds * (1 - JITTER * random);
  const requestedSeconds = getRetryAfterSeconds(outcome, now);
  const elapsedSeconds =
    ((now.getTime() - (delivery.firstAttemptAt ?? now).getTime()) / 1000) * timeScale;
  const remainingSeconds = DELAY_SECONDS.slice(delivery.tries + 1).reduce(
    (sum, delay) => sum + delay + ATTEMPT_SECONDS,
    ATTEMPT_SECONDS,
  );
  const maxSeconds = WINDOW_SECONDS - elapsedSeconds - remainingSeconds;
  const seconds = Math.max(
    jitteredSeconds,
    Math.min(requestedSeconds, 2 * delaySeconds, maxSeconds),
  );
  return {
    status: 'pending',
    nextAttemptAt: new Date(now.getTime() + Math.round((seconds * 1000) / timeScale)),
  };
}

/** Parses Retry-After of a 429 or 503, in seconds or as a date; 0 when it is missing or cannot be parsed. */
function getRetryAfterSeconds(outcome: Outcome, now: Date): number {
  if (outcome.kind !== 'responded' || outcome.retryAfter === null) return 0;
  if (outcome.status !== 429 && outcome.status !== 503) return 0;
  const text = outcome.retryAfter.trim();
  if (/^\d{1,10}$/.test(text)) return Number(text);
  const date = Date.parse(text);
  return Number.isNaN(date) ? 0 : Math.max(0, (date - now.getTime()) / 1000);
}

/**
 * Renders SQL that makes dispatchers check queues. A queue without an owner becomes due at once; the owner of any other
 * sees by `enqueued_count` that it must read the queue again before it releases it.
 * @param ids an SQL query of subscription ids in ascending order; in any other order two transactions could deadlock
 * @param claim SQL for the owner that a queue without one gets instead, and until when; a null owner means none
 */
export function armQueues(
  ids: string,
  claim: { owner: string; until: string } = { owner: 'null::int', until: 'now()' },
): string {
  const { owner, until } = claim;
  return `insert into webhook_queues as q (subscription_id, dispatcher_id, due_at)
    select id, ${owner}, case when ${owner} is null then now() else ${until} end from (${ids}) as armed (id)
    on conflict (subscription_id) do update set enqueued_count = q.enqueued_count + 1,
      dispatcher_id = coalesce(q.dispatcher_id, excluded.dispatcher_id),
      due_at = case when q.dispatcher_id is not null then q.due_at
                    when excluded.dispatcher_id is not null then excluded.due_at
                    else least(q.due_at, excluded.due_at) end`;
}
