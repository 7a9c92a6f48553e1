import { Injectable, Logger } from '@nestjs/common';
import { Pool, type PoolClient } from 'pg';
import { Config } from '#kernel/config.js';
import { newId } from '#kernel/randomness.js';
import { auditBySystem } from '#database/audit-log.js';
import { Batcher } from '#database/batcher.js';
import { byteaArray } from '#database/bytea-array.js';
import { inTransaction, isPassing } from '#database/connection.js';
import { PersonalKeys } from '#event-store/personal-keys.js';
import { withPartitions } from '#public-events/webhook-partitions.service.js';
import { errorOf, wasTried } from '#sending/outcome.js';
import type { Attempted } from '#sending/webhook.client.js';
import {
  endsSubscription,
  excerptContext,
  FAILING_SECONDS,
  type Next,
} from '#subscriptions/webhook-delivery.js';
import type { Delivery } from './delivery.js';
import { DeliveryMetrics } from './delivery-metrics.service.js';
import type { FailingNotice } from './failing-notice.js';
import { FailingNotices } from './failing-notices.service.js';
import { finishedFrom } from './finished-deliveries.js';

/** The most results that one statement records. */
const GROUP = 512;

/** An attempt, or the reason why there was none, and what follows from it. */
export type Result = {
  delivery: Delivery;
  attempted: Attempted;
  /** Of a manual attempt, only `delivered` and what happens to the subscription count. */
  next: Next;
};

type Sealed = Result & { excerpt: Buffer | null };

/**
 * Can only be looked up by index. For plain equality PostgreSQL may read the whole queue instead: statistics that were
 * taken while it was empty say that this is the same.
 */
const IS_MEANT = 'p.subscription_id = any (array[r.subscription_id]) and p.id = any (array[r.id])';

/**
 * Records scheduled attempts. A success always counts, even if the lane has been lost meanwhile; any other result
 * counts only if nobody has recorded that attempt before. Never changes updated_at (contract section 9).
 */
const FINISH = {
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
      where ${IS_MEANT} and r.status <> 'pending'
        and (p.tries = r.tries or r.status = 'delivered')
      returning p.*, r.status, r.sent, r.done_at
    ), finished as (
      ${finishedFrom('gone', {
        status: 'status',
        attempts: 'attempts_count + sent::int',
        deliveredAt: "case when status = 'delivered' then done_at end",
      })}
    ), again as (
      update webhook_pending p set tries = p.tries + 1, attempts_count = p.attempts_count + r.sent::int,
        first_attempt_at = coalesce(p.first_attempt_at, r.at), next_attempt_at = r.next_attempt_at
      from r
      where ${IS_MEANT} and r.status = 'pending'
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

/** Records a manual attempt of a delivery that is still pending or already finished. */
const FINISH_MANUAL = {
  name: 'webhook_finish_manual',
  text: `
    with asked as (
      delete from webhook_redeliveries where id = $1 returning id
    ), gone as (
      delete from webhook_pending p
      where p.subscription_id = $2 and p.id = $3 and $4::boolean and exists (select from asked)
      returning p.*
    ), moved as (
      ${finishedFrom('gone', {
        status: "'delivered'",
        attempts: 'attempts_count + 1',
        deliveredAt: '$6',
      })}
    ), pending as (
      update webhook_pending p set attempts_count = p.attempts_count + 1
      where p.subscription_id = $2 and p.id = $3 and not $4::boolean and exists (select from asked)
      returning p.attempts_count
    ), finished as (
      update webhook_finished f set attempts_count = f.attempts_count + 1,
        status = case when $4::boolean then 'delivered' else f.status end,
        delivered_at = case when $4::boolean then coalesce(f.delivered_at, $6) else f.delivered_at end
      where f.subscription_id = $2 and f.id = $3 and exists (select from asked)
      returning f.attempts_count
    ), subscriptions as (
      update webhook_subscriptions s set last_delivery_at = $5, last_delivery_status = $7,
        last_delivery_error = $9, failing_since = case when $4::boolean then null else s.failing_since end
      where s.id = $2
    )
    insert into webhook_attempts (delivery_id, attempt, kind, at, status, duration_ms, error, response_excerpt)
    select $3, n.attempt, 'manual', $5, $7, $8, $9, $10
    from (select attempts_count + 1 as attempt from gone
          union all select attempts_count from pending
          union all select attempts_count from finished) n`,
};

const FORGET_REDELIVERY = {
  name: 'webhook_redelivery_forget',
  text: 'delete from webhook_redeliveries where id = $1',
};

const AUDIT = auditBySystem('ended', {
  accountId: 'account_id',
  type: '$2',
  requestId: '$3',
  subject: "jsonb_build_object('webhook_subscription_id', id) || $4::jsonb",
});

/** Records attempts and what follows from them. */
@Injectable()
export class AttemptResults {
  /**
   * One group at a time, so that two of them never update the same subscription, and because a statement costs
   * PostgreSQL as much as dozens of results: what waits for it makes the next group larger.
   */
  private readonly recording = new Batcher<Result, Next>(1, GROUP, (group) =>
    this.metrics.statement(
      'record',
      () => this.recordGroup(group),
      () => group.length,
    ),
  );

  private readonly log = new Logger('webhook subscriptions');

  constructor(
    private readonly pool: Pool,
    private readonly keys: PersonalKeys,
    private readonly notices: FailingNotices,
    private readonly metrics: DeliveryMetrics,
    private readonly config: Config,
  ) {}

  /**
   * Rejects only when the database refuses the result or is unavailable; then nothing has been recorded.
   * @returns what follows after all
   */
  async record(result: Result): Promise<Next> {
    return this.recording.add(result);
  }

  /** A result that the database refuses does not keep the others from being recorded. */
  private async recordGroup(group: Result[]): Promise<PromiseSettledResult<Next>[]> {
    try {
      const recorded = await this.recordTogether(group);
      return recorded.map(({ next }) => ({ status: 'fulfilled', value: next }));
    } catch (reason) {
      if (isPassing(reason)) throw reason;
      if (group.length === 1) return [{ status: 'rejected', reason }];
      const half = group.length >> 1;
      const first = await this.recordGroup(group.slice(0, half));
      return [...first, ...(await this.recordGroup(group.slice(half)))];
    }
  }

  private async recordTogether(group: Result[]): Promise<Result[]> {
    const sealed = await this.sealExcerpts(group);
    return withPartitions(this.pool, async () => {
      if (!sealed.some(({ delivery, next }) => delivery.manual || isEnd(next))) {
        await this.pool.query({ ...FINISH, values: finishArguments(sealed) });
        return sealed;
      }
      const ended = await inTransaction(this.pool, async (client) => {
        const results = await unlessMoved(client, sealed);
        const scheduled = results.filter(({ delivery }) => !delivery.manual);
        const manual = results.filter(({ delivery }) => delivery.manual);
        const ending = results.filter(({ next }) => isEnd(next));
        if (scheduled.length > 0) {
          await client.query({ ...FINISH, values: finishArguments(scheduled) });
        }
        for (const one of manual) await finishManual(client, one);
        const notices: FailingNotice[] = [];
        const gone: Delivery[] = [];
        for (const one of ending) {
          if (one.next.subscription.kept) notices.push(...(await this.disable(client, one)));
          else if (await deleteSubscription(client, one)) gone.push(one.delivery);
        }
        return { results, notices, gone };
      });
      this.notices.logAll(ended.notices);
      for (const { subscriptionId, accountId, eventId } of ended.gone) {
        this.log.warn('a webhook subscription was deleted: its receiver answered 410', {
          subscription_id: subscriptionId,
          account_id: accountId,
          event_id: eventId,
        });
      }
      return ended.results;
    });
  }

  private async sealExcerpts(group: Result[]): Promise<Sealed[]> {
    const excerpts = await this.keys.sealAll(
      group.map(({ delivery, attempted: { excerpt } }) => ({
        customerId: delivery.customerId,
        plain: excerpt === null ? null : Buffer.from(excerpt),
        context: excerptContext(delivery.id),
      })),
    );
    return group.map((result, i) => ({ ...result, excerpt: excerpts[i] ?? null }));
  }

  /** Nothing pending is sent any more (contract section 9). */
  private async disable(
    client: PoolClient,
    { delivery, attempted, next: { subscription } }: Result,
  ): Promise<FailingNotice[]> {
    if (!('disabled' in subscription)) return [];
    const { disabled: reason } = subscription;
    const failingMs = (FAILING_SECONDS * 1000) / this.config.webhookTimeScale;
    const at = doneAt(attempted);
    // If it has been enabled again meanwhile, it is not failing any more.
    const { rowCount } = await client.query(
      `with ended as (
         update webhook_subscriptions set enabled = false, disabled_at = $5, disabled_reason = $6,
           give_up_before = now()
         where id = $1 and enabled and ($6 <> 'failing' or failing_since <= $7)
         returning id, account_id
       )
       ${AUDIT}`,
      [
        delivery.subscriptionId,
        'webhook_subscription.disabled',
        newId(),
        { reason, event_id: delivery.eventId },
        at,
        reason,
        new Date(at.getTime() - failingMs),
      ],
    );
    return rowCount ? this.notices.write(client, 'disabled', [delivery.subscriptionId]) : [];
  }
}

function isEnd({ subscription }: Next): boolean {
  return endsSubscription(subscription);
}

/**
 * A receiver ends only a subscription that still leads to it: whoever moves to another URL leaves a 410 or no address at
 * all behind. What was not accepted there is due at once at the new one.
 */
async function unlessMoved(client: PoolClient, results: Sealed[]): Promise<Sealed[]> {
  const ending = results.filter(({ next }) => isEnd(next));
  if (ending.length === 0) return results;
  const { rows } = await client.query<{ id: number; target_url: string }>(
    `select id, target_url from webhook_subscriptions where id = any ($1)
     order by id for no key update`,
    [ending.map(({ delivery }) => delivery.subscriptionId)],
  );
  const urls = new Map(rows.map((row) => [row.id, row.target_url]));
  return results.map((result) => {
    const { delivery, attempted, next } = result;
    const url = urls.get(delivery.subscriptionId) ?? attempted.url;
    if (!isEnd(next) || attempted.url === null || attempted.url === url) return result;
    const again: Next = {
      delivery: { status: 'pending', nextAttemptAt: doneAt(attempted) },
      subscription: { kept: true, failingSince: null },
    };
    return { ...result, next: again };
  });
}

/** After a 410; what is pending goes with it (contract section 9). False if it was gone already. */
async function deleteSubscription(client: PoolClient, { delivery }: Result): Promise<boolean> {
  const { rowCount } = await client.query(
    `with ended as (delete from webhook_subscriptions where id = $1 returning id, account_id)
     ${AUDIT}`,
    [
      delivery.subscriptionId,
      'webhook_subscription.deleted',
      newId(),
      { status: 410, event_id: delivery.eventId },
    ],
  );
  return rowCount !== null && rowCount > 0;
}

async function finishManual(client: PoolClient, result: Sealed): Promise<void> {
  const { delivery, attempted, next, excerpt } = result;
  const { kind } = attempted.outcome;
  if (kind === 'missing') {
    await client.query({ ...FORGET_REDELIVERY, values: [delivery.redeliveryId] });
    return;
  }
  await client.query({
    ...FINISH_MANUAL,
    values: [
      delivery.redeliveryId,
      delivery.subscriptionId,
      delivery.id,
      next.delivery.status === 'delivered',
      attempted.at,
      doneAt(attempted),
      statusOf(attempted),
      attempted.durationMs,
      errorOf(attempted.outcome),
      excerpt,
    ],
  });
}

function finishArguments(results: Sealed[]): unknown[] {
  const states = subscriptionStates(results);
  return [
    plainArray(results, ({ delivery }) => delivery.subscriptionId),
    plainArray(results, ({ delivery }) => delivery.id),
    plainArray(results, ({ delivery }) => delivery.tries),
    plainArray(results, ({ next }) => next.delivery.status),
    plainArray(results, ({ next }) =>
      next.delivery.status === 'pending' ? next.delivery.nextAttemptAt.getTime() : null,
    ),
    plainArray(results, ({ attempted }) => attempted.at.getTime()),
    plainArray(results, ({ attempted }) => wasTried(attempted.outcome)),
    plainArray(results, ({ attempted }) => statusOf(attempted)),
    plainArray(results, ({ attempted }) => attempted.durationMs),
    results.map(({ attempted }) => errorOf(attempted.outcome)),
    byteaArray(results.map(({ excerpt }) => excerpt)),
    plainArray(states, ({ id }) => id),
    plainArray(states, ({ succeeded }) => succeeded),
    plainArray(states, ({ failingSince }) => failingSince?.getTime() ?? null),
    plainArray(states, ({ newest }) => newest.attempted.at.getTime()),
    plainArray(states, ({ newest }) => statusOf(newest.attempted)),
    states.map(({ newest }) => errorOf(newest.attempted.outcome)),
  ];
}

/**
 * An array literal in PostgreSQL's own notation: the driver's conversion of each value is too slow for thousands a
 * second.
 */
function plainArray<T>(
  items: T[],
  value: (item: T) => number | boolean | Next['delivery']['status'] | null,
): string {
  return `{${items.map((item) => value(item) ?? 'null').join()}}`;
}

type SubscriptionChange = {
  id: number;
  /** If any attempt succeeded, `failingSince` is counted from the last success, otherwise from the first failure. */
  succeeded: boolean;
  failingSince: Date | null;
  newest: Result;
};

/** One change per subscription, however many of its attempts are in the group. */
function subscriptionStates(results: Sealed[]): SubscriptionChange[] {
  const states = new Map<number, SubscriptionChange>();
  for (const result of results) {
    const { delivery, attempted, next } = result;
    if (!wasTried(attempted.outcome)) continue;
    const id = delivery.subscriptionId;
    const state = states.get(id) ?? { id, succeeded: false, failingSince: null, newest: result };
    state.newest = result;
    if (next.delivery.status === 'delivered') {
      state.succeeded = true;
      state.failingSince = null;
    } else state.failingSince ??= doneAt(attempted);
    states.set(id, state);
  }
  return [...states.values()];
}

function statusOf({ outcome }: Attempted): number | null {
  return outcome.kind === 'answered' ? outcome.status : null;
}

export function doneAt({ at, durationMs }: Attempted): Date {
  return new Date(at.getTime() + durationMs);
}
