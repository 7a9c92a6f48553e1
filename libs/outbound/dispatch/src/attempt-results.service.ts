import { Injectable, Logger } from '@nestjs/common';
import { Pool, type PoolClient } from 'pg';
import { Config } from '#configuration/config.js';
import { createId } from '#kernel/randomness.js';
import { auditBySystem } from '#database/audit-log.js';
import { Batcher, BatchSlots } from '#database/batcher.js';
import { inTransaction, isTransient } from '#database/connection.js';
import { PersonalKeys } from '#event-store/personal-keys/personal-keys.js';
import { withPartitions } from '#public-events/webhook-partitions.service.js';
import { getEndedAt, getError, getHttpStatus } from '#sending/outcome.js';
import {
  endsSubscription,
  getExcerptContext,
  FAILING_SECONDS,
  type FollowUp,
} from '#subscriptions/webhook-delivery.js';
import type { Delivery } from './delivery.js';
import { DeliveryMetrics } from './delivery-metrics.service.js';
import type { FailingNotice } from './failing-notice.js';
import { DeliveryQueues } from './delivery-queues.service.js';
import { FailingNotices } from './failing-notices.service.js';
import {
  FINISH,
  insertFinished,
  toFinishArguments,
  MOVE_UPDATED_AT,
  type Result,
  type SealedResult,
} from './finish-statement.js';

/** Other statements go on beside one that is stuck, which waits for a lock. */
const LIMITS = { queues: 4, groupSize: 512, stuckMs: 250 };

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
      ${insertFinished('gone', {
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
   * One group at a time, because a statement costs PostgreSQL as much as dozens of results: what waits for it makes the
   * next ones larger.
   */
  private readonly recordSlots = new BatchSlots(1, () => LIMITS.stuckMs);

  /** All results of a subscription are in the same queue, so two groups never update the same subscription. */
  private readonly queues = Array.from(
    { length: LIMITS.queues },
    () =>
      new Batcher<Result, FollowUp>(
        this.recordSlots,
        LIMITS.groupSize,
        (group) => this.startGroup(group),
        { maxRunning: 1 },
      ),
  );

  private readonly log = new Logger('webhook subscriptions');
  private onRoom: () => void = () => undefined;

  constructor(
    private readonly pool: Pool,
    private readonly keys: PersonalKeys,
    private readonly notices: FailingNotices,
    private readonly deliveryQueues: DeliveryQueues,
    private readonly metrics: DeliveryMetrics,
    private readonly config: Config,
  ) {}

  /**
   * Rejects only when the database refuses the result or is unavailable; then nothing has been recorded.
   * @returns what follows after all
   */
  async record(result: Result): Promise<FollowUp> {
    const queue = this.queues[result.delivery.subscriptionId % LIMITS.queues];
    return (await queue?.add(result)) ?? result.next;
  }

  /** Registers a function that is called whenever attempts may begin again that had to wait for results to be recorded. */
  onRoomForAttempts(listener: () => void): void {
    this.onRoom = listener;
  }

  private async startGroup(group: Result[]): Promise<PromiseSettledResult<FollowUp>[]> {
    const { slots } = this.deliveryQueues;
    const hasRoom = slots.startRecording(group.length);
    try {
      const recorded = this.metrics.timeStatement(
        'record',
        () => this.recordGroup(group),
        () => group.length,
      );
      // Only now, so that nothing delays the statement.
      if (hasRoom) this.onRoom();
      return await recorded;
    } finally {
      slots.endRecording(group.length);
    }
  }

  /** A result that the database refuses does not keep the others from being recorded. */
  private async recordGroup(group: Result[]): Promise<PromiseSettledResult<FollowUp>[]> {
    try {
      const recorded = await this.recordTogether(group);
      return recorded.map(({ next }) => ({ status: 'fulfilled', value: next }));
    } catch (reason) {
      if (isTransient(reason)) throw reason;
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
        await this.pool.query({ ...FINISH, values: toFinishArguments(sealed) });
        return sealed;
      }
      const ended = await inTransaction(this.pool, async (client) => {
        const results = await keepUnlessMoved(client, sealed);
        const scheduled = results.filter(({ delivery }) => !delivery.manual);
        const manual = results.filter(({ delivery }) => delivery.manual);
        const ending = results.filter(({ next }) => isEnd(next));
        if (scheduled.length > 0) {
          await client.query({ ...FINISH, values: toFinishArguments(scheduled) });
        }
        for (const result of manual) await finishManual(client, result);
        const notices: FailingNotice[] = [];
        const deleted: Delivery[] = [];
        for (const result of ending) {
          if (result.next.subscription.isKept)
            notices.push(...(await this.disable(client, result)));
          else if (await deleteSubscription(client, result)) deleted.push(result.delivery);
        }
        return { results, notices, gone: deleted };
      });
      this.notices.logAll(ended.notices);
      for (const { subscriptionId, accountId, eventId } of ended.gone) {
        this.log.warn('a webhook subscription was deleted: its receiver responded with 410', {
          subscription_id: subscriptionId,
          account_id: accountId,
          event_id: eventId,
        });
      }
      return ended.results;
    });
  }

  private async sealExcerpts(group: Result[]): Promise<SealedResult[]> {
    const excerpts = await this.keys.sealAll(
      group.map(({ delivery, attempted: { excerpt } }) => ({
        subjectId: delivery.customerId,
        plain: excerpt === null ? null : Buffer.from(excerpt),
        context: getExcerptContext(delivery.id),
      })),
    );
    return group.map((result, i) => ({ ...result, excerpt: excerpts[i] ?? null }));
  }

  /** Disables a subscription. Nothing pending is sent any more (HOOK-67). */
  private async disable(
    client: PoolClient,
    { delivery, attempted, next: { subscription } }: Result,
  ): Promise<FailingNotice[]> {
    if (!('disabled' in subscription)) return [];
    const { disabled: reason } = subscription;
    const failingMs = (FAILING_SECONDS * 1000) / this.config.webhookTimeScale;
    const at = getEndedAt(attempted);
    // If it has been enabled again meanwhile, it is not failing any more.
    const { rowCount } = await client.query(
      `with ended as (
         update webhook_subscriptions s set enabled = false, disabled_at = $5, disabled_reason = $6,
           give_up_before = now(), ${MOVE_UPDATED_AT}
         where id = $1 and enabled and ($6 <> 'failing' or failing_since <= $7)
         returning id, account_id
       )
       ${AUDIT}`,
      [
        delivery.subscriptionId,
        'webhook_subscription.disabled',
        createId(),
        { reason, event_id: delivery.eventId },
        at,
        reason,
        new Date(at.getTime() - failingMs),
      ],
    );
    return rowCount ? this.notices.write(client, 'disabled', [delivery.subscriptionId]) : [];
  }
}

function isEnd({ subscription }: FollowUp): boolean {
  return endsSubscription(subscription);
}

/**
 * A receiver ends only a subscription that still leads to it: whoever moves to another URL leaves a 410 or no address at
 * all behind. What was not accepted there is due at once at the new one.
 */
async function keepUnlessMoved(
  client: PoolClient,
  results: SealedResult[],
): Promise<SealedResult[]> {
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
    const retry: FollowUp = {
      delivery: { status: 'pending', nextAttemptAt: getEndedAt(attempted) },
      subscription: { isKept: true, failingSince: null },
    };
    return { ...result, next: retry };
  });
}

/** Deletes a subscription after a 410, with what is pending (DELIV-28). False if it was gone already. */
async function deleteSubscription(client: PoolClient, { delivery }: Result): Promise<boolean> {
  const { rowCount } = await client.query(
    `with ended as (delete from webhook_subscriptions where id = $1 returning id, account_id)
     ${AUDIT}`,
    [
      delivery.subscriptionId,
      'webhook_subscription.deleted',
      createId(),
      { status: 410, event_id: delivery.eventId },
    ],
  );
  return rowCount !== null && rowCount > 0;
}

async function finishManual(client: PoolClient, result: SealedResult): Promise<void> {
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
      getEndedAt(attempted),
      getHttpStatus(attempted.outcome),
      attempted.durationMs,
      getError(attempted.outcome),
      excerpt,
    ],
  });
}
