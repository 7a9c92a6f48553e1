import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { Counter, Histogram, Registry } from 'prom-client';
import { getNowMs } from '#platform/kernel/clock.js';
import { addGauge } from '#platform/kernel/gauges.js';
import type { Tier } from './delivery-queue.js';
import { type FollowUp } from '#outbound/subscriptions/webhook-delivery.js';
import { CONNECTED } from '#outbound/sending/http-connections.client.js';
import { getOutcomeLabel, isSuccess, type Outcome } from '#outbound/sending/outcome.js';

const QUICK_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const LAG_BUCKETS = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200];
const SIZE_BUCKETS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

/** Why a dispatcher has disabled or deleted a subscription. */
export type EndReason = 'failing' | 'blocked_address' | 'gone';

export type Statement = 'claim' | 'take' | 'record' | 'enqueue';

type Attempt = { manual: boolean; tries: number; createdAt: Date; dueAt: Date };

/** Metrics of deliveries. Labelled by kind only, because the number of subscriptions and stores is unbounded. */
@Injectable()
export class DeliveryMetrics implements OnApplicationShutdown {
  private readonly times: ReturnType<typeof histograms>;
  private readonly counts: ReturnType<typeof counters>;
  private readonly onConnected = () => this.counts.connections.inc();

  constructor(private readonly registry: Registry) {
    this.times = histograms([registry]);
    this.counts = counters([registry]);
    subscribe(CONNECTED, this.onConnected);
  }

  onApplicationShutdown(): void {
    unsubscribe(CONNECTED, this.onConnected);
  }

  /** Gauges of what the worker holds, read when metrics are scraped. */
  watch(sources: {
    queues: () => Record<Tier, number>;
    inFlight: () => Record<Tier, number>;
    waiting: () => number;
    unrecorded: () => number;
  }): void {
    const byTier = (name: string, help: string, values: () => Record<Tier, number>) =>
      addGauge(this.registry, { name, help, labelNames: ['tier'] }, (gauge) => {
        for (const [tier, value] of Object.entries(values())) gauge.set({ tier }, value);
      });
    byTier(
      'inkpad_webhook_queues_owned',
      'Subscriptions that this process sends for',
      sources.queues,
    );
    byTier('inkpad_webhook_attempts_in_flight', 'Attempts in flight', sources.inFlight);
    const inAll = (name: string, help: string, value: () => number) =>
      addGauge(this.registry, { name, help }, (gauge) => gauge.set(value()));
    inAll(
      'inkpad_webhook_deliveries_loaded',
      'Deliveries in memory that wait for a slot',
      sources.waiting,
    );
    inAll(
      'inkpad_webhook_attempts_unrecorded',
      'Attempts made but not yet recorded',
      sources.unrecorded,
    );
  }

  async timeStatement<R>(
    statement: Statement,
    work: () => Promise<R>,
    size: (result: R) => number,
  ): Promise<R> {
    const startedAt = performance.now();
    const result = await work();
    this.times.seconds.observe({ statement }, (performance.now() - startedAt) / 1000);
    const count = size(result);
    if (count > 0) this.times.sizes.observe({ statement }, count);
    return result;
  }

  observeEnqueued(recordedAt: string): void {
    this.times.planning.observe(secondsSince(new Date(recordedAt)));
  }

  countClaimed(queues: number, takenOver: number): void {
    this.counts.queues.inc({ change: 'claimed' }, queues);
    this.counts.queues.inc({ change: 'taken_over' }, takenOver);
  }

  countLost(): void {
    this.counts.queues.inc({ change: 'lost' });
  }

  observeStart({ manual, tries, dueAt }: Attempt, tier: Tier): void {
    this.times.lag.observe({ tier }, secondsSince(dueAt));
    if (!manual && tries > 0) this.counts.retries.inc({ attempt: String(tries + 1) });
  }

  observeAttempt({ manual, createdAt }: Attempt, outcome: Outcome, durationMs: number): void {
    const kind = manual ? 'manual' : 'scheduled';
    this.times.attempts.observe({ result: getOutcomeLabel(outcome), kind }, durationMs / 1000);
    if (isSuccess(outcome) && !manual) this.times.latency.observe(secondsSince(createdAt));
  }

  /** Counts what followed from an attempt, once that is recorded. */
  countFollowUp({ manual }: Attempt, outcome: Outcome, { delivery, subscription }: FollowUp): void {
    if (manual || delivery.status === 'pending') return;
    this.countFinished(delivery.status, getReason(outcome, delivery.status, subscription));
  }

  /** Deliveries that failed without an attempt: too old, or their subscription was disabled or deleted. */
  countGivenUp(deliveries: number): void {
    this.countFinished('failed', 'given_up', deliveries);
  }

  /** Counts subscriptions that were disabled or deleted. */
  countEnded(reason: EndReason, count = 1): void {
    this.counts.ended.inc({ reason }, count);
  }

  private countFinished(status: string, reason: string, count = 1): void {
    this.counts.finished.inc({ status, reason }, count);
  }
}

function histograms(registers: Registry[]) {
  return {
    lag: new Histogram({
      name: 'inkpad_webhook_schedule_lag_seconds',
      help: 'How far behind schedule attempts begin',
      labelNames: ['tier'],
      buckets: LAG_BUCKETS,
      registers,
    }),
    attempts: new Histogram({
      name: 'inkpad_webhook_attempt_seconds',
      help: 'Duration of attempts by result: the class of the status, or what went wrong',
      labelNames: ['result', 'kind'],
      buckets: QUICK_BUCKETS,
      registers,
    }),
    latency: new Histogram({
      name: 'inkpad_webhook_delivery_seconds',
      help: 'Time from enqueuing a delivery to its 2xx',
      buckets: LAG_BUCKETS,
      registers,
    }),
    planning: new Histogram({
      name: 'inkpad_webhook_enqueue_seconds',
      help: 'Time from the recording of an event to enqueuing its deliveries',
      buckets: LAG_BUCKETS,
      registers,
    }),
    seconds: new Histogram({
      name: 'inkpad_webhook_statement_seconds',
      help: 'Duration of the frequent database statements of dispatchers',
      labelNames: ['statement'],
      buckets: QUICK_BUCKETS,
      registers,
    }),
    sizes: new Histogram({
      name: 'inkpad_webhook_statement_size',
      help: 'Queues claimed, deliveries taken, attempts recorded and deliveries enqueued in one statement',
      labelNames: ['statement'],
      buckets: SIZE_BUCKETS,
      registers,
    }),
  };
}

function counters(registers: Registry[]) {
  return {
    retries: new Counter({
      name: 'inkpad_webhook_retries_total',
      help: 'Scheduled attempts after the first, by number',
      labelNames: ['attempt'],
      registers,
    }),
    finished: new Counter({
      name: 'inkpad_webhook_deliveries_total',
      help: 'Finished deliveries, by result and reason',
      labelNames: ['status', 'reason'],
      registers,
    }),
    ended: new Counter({
      name: 'inkpad_webhook_subscriptions_ended_total',
      help: 'Subscriptions disabled (failing, blocked_address) or deleted (gone) by the dispatcher',
      labelNames: ['reason'],
      registers,
    }),
    queues: new Counter({
      name: 'inkpad_webhook_queues_total',
      help: 'Queues claimed, taken over from a dispatcher that has died, and lost to another dispatcher',
      labelNames: ['change'],
      registers,
    }),
    connections: new Counter({
      name: 'inkpad_webhook_connections_opened_total',
      help: 'New connections to receivers; all other attempts used an open one',
      registers,
    }),
  };
}

function getReason(
  outcome: Outcome,
  status: string,
  subscription: FollowUp['subscription'],
): string {
  if (status === 'delivered') return 'responded';
  if (outcome.kind === 'missing') return outcome.kind;
  if (!subscription.isKept) return 'gone';
  return 'disabled' in subscription ? subscription.disabled : 'attempts_used_up';
}

/** Never negative: clocks may differ slightly. */
function secondsSince(at: Date): number {
  return Math.max(0, (getNowMs() - at.getTime()) / 1000);
}
