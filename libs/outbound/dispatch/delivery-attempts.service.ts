import { Injectable, Logger } from '@nestjs/common';
import { ROOT_CONTEXT, SpanKind, SpanStatusCode, type Span } from '@opentelemetry/api';
import { performance } from 'node:perf_hooks';
import { setTimeout as wait } from 'node:timers/promises';
import { Config } from '#configuration/config.js';
import { getNow, getNowMs } from '#platform/kernel/clock.js';
import { getErrorMessage, UnavailableError } from '#platform/kernel/errors.js';
import { runInSpan } from '#platform/kernel/tracing.js';
import {
  DATABASE_RETRY_MS,
  isDatabaseUnavailable,
  isTransient,
} from '#platform/database/connection.js';
import { KnownErasures } from '#platform/event-store/personal-keys/known-erasures.js';
import {
  EventBodies,
  TEXT_CACHE_MS,
  type PublicEventRef,
} from '#outbound/public-events/event-bodies.service.js';
import { formatBody } from '#outbound/public-events/public-events.js';
import { OutdatedError } from '#outbound/sending/http-response.js';
import {
  getOutcomeLabel,
  getEndedAt,
  isSuccess,
  type AttemptResult,
  type Outcome,
} from '#outbound/sending/outcome.js';
import { WebhookClient, type Attempt } from '#outbound/sending/webhook.client.js';
import {
  decideAfterAttempt,
  decideAfterManualAttempt,
  endsSubscription,
  type FollowUp,
} from '#outbound/subscriptions/webhook-delivery.js';
import { AttemptResults } from './attempt-results.service.js';
import type { Slot } from './attempt-slots.js';
import type { Delivery } from './delivery.js';
import type { Tier, Signal } from './delivery-queue.js';
import { DeliveryMetrics } from './delivery-metrics.service.js';
import { DeliveryQueues, type LeasedQueue } from './delivery-queues.service.js';
import { ISSUES } from '#translations/issues.js';

const MAX_RECORD_TRIES = 3;

/**
 * Sends the known deliveries of the queues in rotation, one of each queue at a time, so that a long queue delays
 * only itself.
 */
@Injectable()
export class DeliveryAttempts {
  private readonly log = new Logger('webhook deliveries');
  private utilisation = performance.eventLoopUtilization();
  private busyShare = 0;

  constructor(
    private readonly queues: DeliveryQueues,
    private readonly bodies: EventBodies,
    private readonly erasures: KnownErasures,
    private readonly client: WebhookClient,
    private readonly results: AttemptResults,
    private readonly metrics: DeliveryMetrics,
    private readonly config: Config,
  ) {
    results.onRoomForAttempts(() => this.dispatchNext());
  }

  /** Sends one delivery of each queue in turn while there are free slots. */
  dispatchNext(): void {
    const { slots, isStopping, isLeaseTrusted } = this.queues;
    if (isStopping || !slots.canBegin || !isLeaseTrusted || !this.knowsErasures) return;
    this.dispatchTier('fast');
    this.dispatchTier('slow');
    this.dispatchTier('probe');
  }

  /** Called at intervals: measures how busy the process is, and finds the attempts that have become slow. */
  measure(now: number): void {
    const { utilization } = performance.eventLoopUtilization(this.utilisation);
    this.utilisation = performance.eventLoopUtilization();
    this.busyShare = utilization;
    this.queues.slots.moveSlowAttempts(now);
  }

  private dispatchTier(tier: Tier): void {
    while (this.queues.slots.isFree(tier)) {
      const queue = this.queues.takeReady(tier);
      if (!queue) return;
      const delivery = queue.startNext();
      if (!delivery) continue;
      if (queue.isHalfEmpty(this.queues.roomPerQueue)) this.queues.requestRefill(queue);
      this.queues.markReady(queue);
      void this.deliver(queue, delivery, this.queues.slots.begin(tier, performance.now()));
    }
  }

  private async deliver(queue: LeasedQueue, delivery: Delivery, slot: Slot): Promise<void> {
    let attempted: AttemptResult | undefined;
    let canFollow = true;
    this.metrics.observeStart(delivery, slot.tier);
    try {
      attempted = await this.attempt(queue, delivery);
    } catch (error) {
      canFollow = !isTransient(error);
      this.log.warn(
        `a delivery failed before it was sent: ${getErrorMessage(error)}`,
        toLogFields(delivery),
      );
    }
    const durationMs = performance.now() - slot.startedAt;
    this.queues.slots.end(slot, attempted !== undefined);
    if (attempted === undefined) {
      // What follows must not wait for a delivery that fails by itself, nor overtake one that could not be read.
      if (canFollow) queue.backOff();
      else this.queues.startOver(queue);
      queue.skip(delivery);
      this.queues.remove(queue, delivery);
      return;
    }
    this.metrics.observeAttempt(delivery, attempted.outcome, durationMs);
    const canGrow = this.queues.slots.canGrow(this.busyShare);
    queue.finishAttempt(delivery, getSignal(attempted), durationMs, canGrow);
    const next = this.decideNext(queue, delivery, attempted);
    this.queues.markReady(queue);
    this.dispatchNext();
    await this.record(queue, delivery, attempted, next);
  }

  /** Makes it anew with another text when the customer is erased before the first byte is written. */
  private async attempt(
    queue: LeasedQueue,
    delivery: Delivery,
  ): Promise<AttemptResult | undefined> {
    let { body, readAt } = delivery;
    for (;;) {
      if (this.isBodyOld(delivery, readAt)) {
        readAt = performance.now();
        const texts = await this.bodies.getTexts([toEventRef(delivery)]);
        body = texts.get(delivery.eventSeq) ?? 'unrendered';
        if (queue.state === 'lost' || !this.queues.isLeaseTrusted) {
          throw new UnavailableError('its queue may belong to another dispatcher by now');
        }
      }
      try {
        return await this.attemptWith(queue, delivery, { body, readAt });
      } catch (error) {
        if (!(error instanceof OutdatedError)) throw error;
        if (!this.knowsErasures) {
          throw new UnavailableError('somebody may have been erased by now', { cause: error });
        }
      }
    }
  }

  /** The customer may have been erased since, or whatever prevented rendering may be gone. */
  private isBodyOld(delivery: Delivery, readAt: number): boolean {
    return performance.now() - readAt > TEXT_CACHE_MS || !this.isCurrent(delivery, readAt);
  }

  private isCurrent({ customerId }: Delivery, readAt: number): boolean {
    return this.erasures.isCurrent(customerId, readAt, performance.now());
  }

  /** Whether what is read now may be sent: erasures wait for this process. */
  get knowsErasures(): boolean {
    return this.erasures.isTrusted(performance.now());
  }

  /** @throws OutdatedError */
  private async attemptWith(
    { target }: LeasedQueue,
    delivery: Delivery,
    { body, readAt }: Pick<Delivery, 'body' | 'readAt'>,
  ): Promise<AttemptResult | undefined> {
    if (typeof body === 'string') return createUnsent({ kind: body });
    if (!target) return undefined;
    const { secret, headers } = target;
    if (secret === null || headers === null) {
      const { message: error } = secret === null ? ISSUES.secret_lost : ISSUES.headers_lost;
      this.log.error(error, toLogFields(delivery));
      return createUnsent({ kind: 'failed', cause: 'secret', error });
    }
    const attempt = {
      url: target.url,
      secret,
      ...(headers && { headers }),
      ...(target.previousSecret !== undefined && { previousSecret: target.previousSecret }),
      eventId: delivery.eventId,
      type: delivery.type,
      body: formatBody(body, delivery.payloadFormat, target.personalData),
      mayBeSent: () => this.isCurrent(delivery, readAt),
    };
    return runInSpan('webhook attempt', {}, (span) => this.sendTraced(span, delivery, attempt), {
      kind: SpanKind.CLIENT,
      // Starts a trace of its own: whatever woke this queue has nothing to do with this attempt.
      parent: ROOT_CONTEXT,
    });
  }

  private async sendTraced(
    span: Span,
    delivery: Delivery,
    attempt: Attempt,
  ): Promise<AttemptResult> {
    const attempted = await this.client.send(attempt);
    if (!span.isRecording()) return attempted;
    const { outcome } = attempted;
    span.setAttributes({
      'inkpad.event_id': delivery.eventId,
      'inkpad.webhook_delivery_id': delivery.id,
      'inkpad.webhook_subscription_id': delivery.subscriptionId,
      'inkpad.attempt': delivery.tries + 1,
      // Only the host of the URL, because paths and queries may hold secrets.
      'server.address': new URL(attempt.url).hostname,
      ...(outcome.kind === 'responded' && { 'http.response.status_code': outcome.status }),
      'inkpad.result': getOutcomeLabel(outcome),
    });
    if (!isSuccess(outcome)) span.setStatus({ code: SpanStatusCode.ERROR });
    return attempted;
  }

  private decideNext(queue: LeasedQueue, delivery: Delivery, attempted: AttemptResult): FollowUp {
    const { target } = queue;
    const subscription = { failingSince: target?.failingSince ?? null };
    const now = getEndedAt(attempted);
    const { webhookTimeScale } = this.config;
    let next: FollowUp;
    if (delivery.manual) {
      const manual = decideAfterManualAttempt(attempted.outcome, subscription, now);
      const status = manual.delivered ? 'delivered' : 'failed';
      next = { delivery: { status }, subscription: manual.subscription };
    } else {
      next = decideAfterAttempt(
        delivery,
        subscription,
        attempted.outcome,
        now,
        Math.random(),
        webhookTimeScale,
      );
    }
    if (endsSubscription(next.subscription)) {
      // Nothing more is sent; what is pending is removed once this result is recorded.
      queue.interrupt('ending');
    } else if (target) target.failingSince = next.subscription.failingSince;
    return next;
  }

  private async record(
    queue: LeasedQueue,
    delivery: Delivery,
    attempted: AttemptResult,
    decided: FollowUp,
  ): Promise<void> {
    let next: FollowUp | undefined = decided;
    for (let failureCount = 0; ;) {
      try {
        next = await this.results.record({ delivery, attempted, next: decided });
        if (next) this.metrics.countFollowUp(delivery, attempted.outcome, next);
        break;
      } catch (error) {
        if (!isDatabaseUnavailable(error) && ++failureCount === MAX_RECORD_TRIES) {
          // It will be sent again later, under the same id.
          this.log.error(
            `the result of an attempt could not be recorded: ${getErrorMessage(error)}`,
            toLogFields(delivery),
          );
          queue.backOff();
          break;
        }
        await wait(DATABASE_RETRY_MS);
      }
    }
    if (this.queues.slots.markRecorded()) this.dispatchNext();
    if (next?.delivery.status === 'pending' && !delivery.manual) {
      queue.nextDueAt = Math.min(
        queue.nextDueAt,
        performance.now() + next.delivery.nextAttemptAt.getTime() - getNowMs(),
      );
    }
    this.queues.remove(queue, delivery);
    if (endsSubscription(decided.subscription)) {
      queue.markEndRecorded();
      this.queues.requestRefill(queue);
    }
  }
}

function createUnsent(outcome: Outcome): AttemptResult {
  return { outcome, url: null, at: getNow(), durationMs: 0, excerpt: null };
}

export function toEventRef({
  eventSeq: seq,
  eventId,
  accountId,
  customerId,
}: Delivery): PublicEventRef {
  return { seq, eventId, accountId, customerId };
}

/** The fields of a log line. */
function toLogFields({
  id,
  subscriptionId,
  accountId,
  eventId,
}: Delivery): Record<string, unknown> {
  return {
    event_id: eventId,
    delivery_id: id,
    subscription_id: subscriptionId,
    account_id: accountId,
  };
}

function getSignal({ outcome }: AttemptResult): Signal {
  if (isSuccess(outcome)) return 'success';
  if (outcome.kind === 'responded') {
    return [429, 502, 503, 504].includes(outcome.status) ? 'overload' : 'error';
  }
  return outcome.kind === 'failed' ? 'silence' : 'error';
}
