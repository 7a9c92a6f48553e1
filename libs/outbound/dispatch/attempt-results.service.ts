import { Injectable, Logger } from '@nestjs/common';
import { Pool, type PoolClient } from 'pg';
import { Config } from '#configuration/config.js';
import { createId } from '#platform/kernel/randomness.js';
import { auditBySystem } from '#platform/database/audit-log.js';
import { Batcher, BatchSlots } from '#platform/database/batcher.js';
import { inTransaction, isTransient } from '#platform/database/connection.js';
import { PersonalKeys } from '#platform/event-store/personal-keys/personal-keys.js';
import { withPartitions } from '#outbound/public-events/webhook-partitions.service.js';
import { getEndedAt, getError, getHttpStatus } from '#outbound/sending/outcome.js';
import {
  decideAfterAttempt,
  endsSubscription,
  getExcerptContext,
  FAILING_SECONDS,
  renderLastDelivery,
  type FollowUp,
} from '#outbound/subscriptions/webhook-delivery.js';
import type { Delivery } from './delivery.js';
import { DeliveryMetrics, type EndReason } from './delivery-metrics.service.js';
import type { FailureReport } from './failure-mail.js';
import { DeliveryQueues } from './delivery-queues.service.js';
import { FailureMails } from './failure-mails.service.js';
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
    ), counted as (
      select attempts_count + 1 as attempt from gone
      union all select attempts_count from pending
      union all select attempts_count from finished
    ), subscriptions as (
      update webhook_subscriptions s set
        ${renderLastDelivery({ at: '$5::timestamptz', status: '$7::int', error: '$9' })},
        healthy_at = case when $4::boolean then greatest(s.healthy_at, $6) else s.healthy_at end,
        failing_since = case when $4::boolean and s.failing_since <= $6 then null else s.failing_since end
      where s.id = $2 and exists (select from counted)
    )
    insert into webhook_other_attempts
      (subscription_id, delivery_id, attempt, kind, at, status, duration_ms, error, response_excerpt)
    select $2, $3, attempt, 'manual', $5, $7, $8, $9, $10 from counted`,
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
      new Batcher<Result, FollowUp | undefined>(
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
    private readonly failureMails: FailureMails,
    private readonly deliveryQueues: DeliveryQueues,
    private readonly metrics: DeliveryMetrics,
    private readonly config: Config,
  ) {}

  /**
   * Rejects only when the database refuses the result or is unavailable; then nothing has been recorded.
   * @returns what follows after all; undefined when the result does not count, so that nothing follows
   */
  async record(result: Result): Promise<FollowUp | undefined> {
    return this.queues[result.delivery.subscriptionId % LIMITS.queues]?.add(result);
  }

  /** Registers a function that is called whenever attempts may begin again that had to wait for results to be recorded. */
  onRoomForAttempts(listener: () => void): void {
    this.onRoom = listener;
  }

  private async startGroup(group: Result[]): Promise<PromiseSettledResult<FollowUp | undefined>[]> {
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
  private async recordGroup(
    group: Result[],
  ): Promise<PromiseSettledResult<FollowUp | undefined>[]> {
    try {
      const recorded = await this.recordTogether(group);
      return recorded.map((value) => ({ status: 'fulfilled', value }));
    } catch (reason) {
      if (isTransient(reason)) throw reason;
      if (group.length === 1) return [{ status: 'rejected', reason }];
      const half = group.length >> 1;
      const first = await this.recordGroup(group.slice(0, half));
      return [...first, ...(await this.recordGroup(group.slice(half)))];
    }
  }

  private async recordTogether(group: Result[]): Promise<(FollowUp | undefined)[]> {
    const sealed = await this.sealExcerpts(group);
    return withPartitions(this.pool, async () => {
      if (!sealed.some(({ delivery, next }) => delivery.manual || isEnd(next))) {
        const recordedResults = await finishScheduled(this.pool, sealed);
        return sealed.map((result) => (recordedResults.has(result) ? result.next : undefined));
      }
      const ended = await inTransaction(this.pool, async (client) => {
        const results = await keepUnlessOutdated(client, sealed, this.config.webhookTimeScale);
        const recordedResults = await finishScheduled(
          client,
          results.filter(({ delivery }) => !delivery.manual),
        );
        for (const result of results) {
          if (result.delivery.manual && (await finishManual(client, result)))
            recordedResults.add(result);
        }
        const reports: FailureReport[] = [];
        const reasons: EndReason[] = [];
        const deleted: Delivery[] = [];
        for (const result of recordedResults) {
          const { subscription } = result.next;
          if (!endsSubscription(subscription)) continue;
          if (subscription.isKept) {
            if (!(await this.disable(client, result, subscription.disabled))) continue;
            reasons.push(subscription.disabled);
            const { subscriptionId } = result.delivery;
            reports.push(...(await this.failureMails.write(client, 'disabled', [subscriptionId])));
          } else if (await deleteSubscription(client, result)) {
            reasons.push('gone');
            deleted.push(result.delivery);
          }
        }
        const next = results.map((result) =>
          recordedResults.has(result) ? result.next : undefined,
        );
        return { next, reports, reasons, deleted };
      });
      for (const reason of ended.reasons) this.metrics.countEnded(reason);
      this.failureMails.logAll(ended.reports);
      for (const { subscriptionId, accountId, eventId } of ended.deleted) {
        this.log.warn('a webhook subscription was deleted: its receiver responded with 410', {
          subscription_id: subscriptionId,
          account_id: accountId,
          event_id: eventId,
        });
      }
      return ended.next;
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

  /** Disables a subscription. Nothing pending is sent any more (HOOK-67). @returns whether it was enabled */
  private async disable(
    client: PoolClient,
    { delivery, attempted }: Result,
    reason: 'failing' | 'blocked_address',
  ): Promise<boolean> {
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
    return rowCount !== null && rowCount > 0;
  }
}

function isEnd({ subscription }: FollowUp): boolean {
  return endsSubscription(subscription);
}

/**
 * Keeps a subscription that a result would end though it no longer says anything about it: whoever moves to another URL
 * leaves a 410 or no address at all behind, and whoever enables it again, or whose receiver has responded with a success
 * since, has a receiver. What was not accepted is due at once. A receiver that has not failed for as long as the view of the
 * dispatcher said, because it has responded with a success since that was read, is decided about anew.
 */
async function keepUnlessOutdated(
  client: PoolClient,
  results: SealedResult[],
  timeScale: number,
): Promise<SealedResult[]> {
  const ending = results.filter(({ next }) => isEnd(next));
  if (ending.length === 0) return results;
  const { rows } = await client.query<{
    id: number;
    target_url: string;
    healthy_at: Date | null;
    failing_since: Date | null;
  }>(
    `select id, target_url, healthy_at, failing_since from webhook_subscriptions where id = any ($1)
     order by id for no key update`,
    [ending.map(({ delivery }) => delivery.subscriptionId)],
  );
  const subscriptions = new Map(rows.map((row) => [row.id, row]));
  // Successes of the same group are written after this.
  const successes = new Map<number, number>();
  for (const { delivery, attempted, next } of results) {
    if (next.delivery.status !== 'delivered') continue;
    const at = Math.max(successes.get(delivery.subscriptionId) ?? 0, +getEndedAt(attempted));
    successes.set(delivery.subscriptionId, at);
  }
  return results.map((result) => {
    const { delivery, attempted, next } = result;
    const subscription = subscriptions.get(delivery.subscriptionId);
    if (!isEnd(next) || attempted.url === null || !subscription) return result;
    const endedAt = getEndedAt(attempted);
    const isMoved = attempted.url !== subscription.target_url;
    const healthyAt = Math.max(
      +(subscription.healthy_at ?? 0),
      successes.get(subscription.id) ?? 0,
    );
    const isHealthySince = healthyAt >= +endedAt;
    if (isMoved || isHealthySince) {
      const retry: FollowUp = {
        delivery: { status: 'pending', nextAttemptAt: endedAt },
        subscription: { isKept: true, failingSince: null },
      };
      return { ...result, next: retry };
    }
    const { subscription: decided } = next;
    if (!('disabled' in decided) || decided.disabled !== 'failing') return result;
    const since = subscription.failing_since;
    const failingSince = since !== null && +since > healthyAt ? since : null;
    const { outcome } = attempted;
    const anew = { failingSince };
    return {
      ...result,
      next: decideAfterAttempt(delivery, anew, outcome, endedAt, Math.random(), timeScale),
    };
  });
}

/** Records scheduled attempts. @returns those that count */
async function finishScheduled(
  by: Pool | PoolClient,
  results: SealedResult[],
): Promise<Set<SealedResult>> {
  if (results.length === 0) return new Set();
  const { rows } = await by.query<{ n: number }>({ ...FINISH, values: toFinishArguments(results) });
  const uncounted = new Set(rows.map(({ n }) => n));
  return new Set(results.filter((_result, i) => !uncounted.has(i + 1)));
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

/** Records a manual attempt. @returns whether it counts: whoever has recorded it before has removed its request */
async function finishManual(client: PoolClient, result: SealedResult): Promise<boolean> {
  const { delivery, attempted, next, excerpt } = result;
  const { rowCount } =
    attempted.outcome.kind === 'missing'
      ? await client.query({ ...FORGET_REDELIVERY, values: [delivery.redeliveryId] })
      : await client.query({
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
  return rowCount !== null && rowCount > 0;
}
