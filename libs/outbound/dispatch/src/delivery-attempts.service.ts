import { Injectable, Logger } from '@nestjs/common';
import { performance } from 'node:perf_hooks';
import { setTimeout as wait } from 'node:timers/promises';
import { Config } from '#configuration/config.js';
import { getErrorMessage, UnavailableError } from '#kernel/errors.js';
import { ROOT_CONTEXT, SpanKind, SpanStatusCode, runInSpan, type Span } from '#kernel/tracing.js';
import { DATABASE_RETRY_MS, isDatabaseUnavailable, isTransient } from '#database/connection.js';
import { KnownErasures } from '#event-store/personal-keys/known-erasures.js';
import {
  EventBodies,
  TEXT_CACHE_MS,
  type PublicEventRef,
} from '#public-events/event-bodies.service.js';
import { formatBody } from '#public-events/public-events.js';
import { OutdatedError } from '#sending/answer.js';
import {
  attemptResult,
  doneAt,
  isSuccess,
  type Attempted,
  type Outcome,
} from '#sending/outcome.js';
import { WebhookClient, type Attempt } from '#sending/webhook.client.js';
import { SECRET_LOST } from '#sending/webhook-secrets.service.js';
import {
  afterAttempt,
  afterManualAttempt,
  endsSubscription,
  type Next,
} from '#subscriptions/webhook-delivery.js';
import { AttemptResults } from './attempt-results.service.js';
import type { Slot } from './attempt-slots.js';
import type { Delivery } from './delivery.js';
import type { Pace, Signal } from './delivery-lane.js';
import { DeliveryMetrics } from './delivery-metrics.service.js';
import { OwnedLanes, type Known, type Lane } from './owned-lanes.service.js';

const RECORD_TRIES = 3;

/**
 * Sends the known deliveries of the owned lanes in rotation, one of each lane at a time, so that a long queue delays
 * only itself.
 */
@Injectable()
export class DeliveryAttempts {
  private readonly log = new Logger('webhook deliveries');
  private utilisation = performance.eventLoopUtilization();
  private busyShare = 0;

  constructor(
    private readonly lanes: OwnedLanes,
    private readonly bodies: EventBodies,
    private readonly erasures: KnownErasures,
    private readonly client: WebhookClient,
    private readonly results: AttemptResults,
    private readonly metrics: DeliveryMetrics,
    private readonly config: Config,
  ) {}

  /** Sends one delivery of each lane in turn while there are free slots. */
  pump(): void {
    const { slots, stopping, isLeaseTrusted } = this.lanes;
    if (stopping || !slots.mayBegin || !isLeaseTrusted || !this.learnsOfErasures) return;
    this.pumpRing('fast');
    this.pumpRing('slow');
    this.pumpRing('probe');
  }

  /** Called at intervals: measures how busy the process is, and finds the attempts that have become slow. */
  tick(now: number): void {
    const { utilization } = performance.eventLoopUtilization(this.utilisation);
    this.utilisation = performance.eventLoopUtilization();
    this.busyShare = utilization;
    this.lanes.slots.slowDown(now);
  }

  private pumpRing(pace: Pace): void {
    const ring = this.lanes.rings[pace];
    for (const owned of ring) {
      if (!this.lanes.slots.isFree(pace)) return;
      ring.delete(owned);
      if (!owned.maySend) continue;
      const delivery = owned.lane.next();
      if (!delivery) continue;
      // A set is iterated in insertion order, so this lane comes again after the others.
      ring.add(owned);
      this.lanes.begun();
      this.start(owned, delivery, pace);
    }
  }

  private start(owned: Lane, delivery: Known, pace: Pace): void {
    const slot = this.lanes.slots.begin(pace, performance.now());
    owned.begin();
    if (owned.isHalfEmpty(this.lanes.room)) this.lanes.askToFill(owned);
    void this.deliver(owned, delivery, slot);
  }

  private async deliver(owned: Lane, delivery: Known, slot: Slot): Promise<void> {
    let attempted: Attempted | undefined;
    let mayFollow = true;
    this.metrics.begins(delivery, slot.pace);
    try {
      attempted = await this.attempt(owned, delivery);
    } catch (error) {
      mayFollow = !isTransient(error);
      this.log.warn(
        `a delivery failed before it was sent: ${getErrorMessage(error)}`,
        aboutOf(delivery),
      );
    }
    const milliseconds = performance.now() - slot.since;
    this.lanes.slots.end(slot, attempted !== undefined);
    if (attempted === undefined) {
      // What follows must not wait for a delivery that fails by itself, nor overtake one that could not be read.
      if (mayFollow) owned.hold = 'trouble';
      else this.lanes.startOver(owned);
      owned.lane.letGo(delivery);
      this.lanes.settle(owned, delivery);
      return;
    }
    this.metrics.made(delivery, attempted.outcome, milliseconds);
    const mayGrow = this.lanes.slots.mayGrow(this.busyShare);
    owned.lane.done(delivery, signalOf(attempted), milliseconds, mayGrow);
    const next = this.judge(owned, delivery, attempted);
    this.lanes.ready(owned);
    this.pump();
    await this.record(owned, delivery, attempted, next);
  }

  /** Makes it anew with another text when the customer is erased before the first byte is written. */
  private async attempt(owned: Lane, delivery: Known): Promise<Attempted | undefined> {
    let { body, readAt } = delivery;
    for (;;) {
      if (this.isOld(delivery, readAt)) {
        readAt = performance.now();
        const texts = await this.bodies.getTexts([eventOf(delivery)]);
        body = texts.get(delivery.eventSeq) ?? 'unrendered';
        if (owned.lost || !this.lanes.isLeaseTrusted) {
          throw new UnavailableError('its lane may belong to another dispatcher by now');
        }
      }
      try {
        return await this.attemptWith(owned, delivery, { body, readAt });
      } catch (error) {
        if (!(error instanceof OutdatedError)) throw error;
        if (!this.learnsOfErasures) {
          throw new UnavailableError('somebody may have been erased by now', { cause: error });
        }
      }
    }
  }

  /** The customer may have been erased since, or whatever prevented rendering may be gone. */
  private isOld(delivery: Known, readAt: number): boolean {
    return performance.now() - readAt > TEXT_CACHE_MS || !this.isCurrent(delivery, readAt);
  }

  private isCurrent({ customerId }: Known, readAt: number): boolean {
    return this.erasures.isCurrent(customerId, readAt, performance.now());
  }

  private get learnsOfErasures(): boolean {
    return this.erasures.isTrusted(performance.now());
  }

  /** @throws OutdatedError */
  private async attemptWith(
    { target }: Lane,
    delivery: Known,
    { body, readAt }: Pick<Known, 'body' | 'readAt'>,
  ): Promise<Attempted | undefined> {
    if (typeof body === 'string') return notMade({ kind: body });
    if (!target) return undefined;
    if (target.secret === null) {
      this.log.error(SECRET_LOST, aboutOf(delivery));
      return notMade({ kind: 'failed', error: SECRET_LOST });
    }
    const attempt = {
      url: target.url,
      secret: target.secret,
      ...(target.previousSecret !== undefined && { previousSecret: target.previousSecret }),
      eventId: delivery.eventId,
      type: delivery.type,
      body: formatBody(body, delivery.payloadFormat),
      mayBeSent: () => this.isCurrent(delivery, readAt),
    };
    return runInSpan('webhook attempt', {}, (span) => this.sendTraced(span, delivery, attempt), {
      kind: SpanKind.CLIENT,
      // Starts a trace of its own: whatever woke this lane has nothing to do with this attempt.
      parent: ROOT_CONTEXT,
    });
  }

  private async sendTraced(span: Span, delivery: Known, attempt: Attempt): Promise<Attempted> {
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
      ...(outcome.kind === 'answered' && { 'http.response.status_code': outcome.status }),
      'inkpad.result': attemptResult(outcome),
    });
    if (!isSuccess(outcome)) span.setStatus({ code: SpanStatusCode.ERROR });
    return attempted;
  }

  private judge(owned: Lane, delivery: Known, attempted: Attempted): Next {
    const { target } = owned;
    const subscription = { failingSince: target?.failingSince ?? null };
    const now = doneAt(attempted);
    const { webhookTimeScale } = this.config;
    let next: Next;
    if (delivery.manual) {
      const manual = afterManualAttempt(attempted.outcome, subscription, now);
      const status = manual.delivered ? 'delivered' : 'failed';
      next = { delivery: { status }, subscription: manual.subscription };
    } else {
      next = afterAttempt(
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
      this.lanes.close(owned);
    } else if (target) target.failingSince = next.subscription.failingSince;
    return next;
  }

  private async record(
    owned: Lane,
    delivery: Known,
    attempted: Attempted,
    judged: Next,
  ): Promise<void> {
    let next = judged;
    for (let refusals = 0; ;) {
      try {
        next = await this.results.record({ delivery, attempted, next: judged });
        this.metrics.followed(delivery, attempted.outcome, next);
        break;
      } catch (error) {
        if (!isDatabaseUnavailable(error) && ++refusals === RECORD_TRIES) {
          // It will be sent again later, under the same id.
          this.log.error(
            `the result of an attempt could not be recorded: ${getErrorMessage(error)}`,
            aboutOf(delivery),
          );
          owned.hold = 'trouble';
          break;
        }
        await wait(DATABASE_RETRY_MS);
      }
    }
    if (this.lanes.slots.recorded()) this.pump();
    if (next.delivery.status === 'pending' && !delivery.manual) {
      owned.nextDue = Math.min(
        owned.nextDue,
        performance.now() + next.delivery.nextAttemptAt.getTime() - Date.now(),
      );
    }
    this.lanes.settle(owned, delivery);
    if (endsSubscription(judged.subscription)) {
      owned.closed();
      this.lanes.askToFill(owned);
    }
  }
}

function notMade(outcome: Outcome): Attempted {
  return { outcome, url: null, at: new Date(), durationMs: 0, excerpt: null };
}

export function eventOf({
  eventSeq: seq,
  eventId,
  accountId,
  customerId,
}: Delivery): PublicEventRef {
  return { seq, eventId, accountId, customerId };
}

/** The fields of a log line. */
function aboutOf({ id, subscriptionId, accountId, eventId }: Delivery): Record<string, unknown> {
  return {
    event_id: eventId,
    delivery_id: id,
    subscription_id: subscriptionId,
    account_id: accountId,
  };
}

function signalOf({ outcome }: Attempted): Signal {
  if (isSuccess(outcome)) return 'success';
  if (outcome.kind === 'answered') {
    return [429, 502, 503, 504].includes(outcome.status) ? 'overload' : 'refusal';
  }
  return outcome.kind === 'failed' ? 'silence' : 'refusal';
}
