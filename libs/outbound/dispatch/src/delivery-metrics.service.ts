import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { Pace } from './delivery-lane.js';
import { type Next } from '#subscriptions/webhook-delivery.js';
import { CONNECTED } from '#sending/http-connections.client.js';
import { attemptResult, isSuccess, type Outcome } from '#sending/outcome.js';

const QUICK = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const LATE = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200];
const SIZES = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

export type Statement = 'claim' | 'take' | 'record' | 'plan';

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
  watch(held: {
    lanes: () => Record<Pace, number>;
    inFlight: () => Record<Pace, number>;
    known: () => number;
    unrecorded: () => number;
  }): void {
    const byPace = (name: string, help: string, values: () => Record<Pace, number>) =>
      this.registry.registerMetric(
        new Gauge({
          name,
          help,
          labelNames: ['pace'],
          registers: [],
          collect() {
            for (const [pace, value] of Object.entries(values())) this.set({ pace }, value);
          },
        }),
      );
    byPace('inkpad_webhook_queues_owned', 'Subscriptions that this process sends for', held.lanes);
    byPace('inkpad_webhook_attempts_in_flight', 'Attempts in flight', held.inFlight);
    const inAll = (name: string, help: string, value: () => number) =>
      this.registry.registerMetric(
        new Gauge({
          name,
          help,
          registers: [],
          collect() {
            this.set(value());
          },
        }),
      );
    inAll(
      'inkpad_webhook_deliveries_known',
      'Deliveries in memory that wait for a slot',
      held.known,
    );
    inAll(
      'inkpad_webhook_attempts_unrecorded',
      'Attempts made but not yet recorded',
      held.unrecorded,
    );
  }

  async statement<R>(
    statement: Statement,
    work: () => Promise<R>,
    size: (answer: R) => number,
  ): Promise<R> {
    const begun = performance.now();
    const answer = await work();
    this.times.seconds.observe({ statement }, (performance.now() - begun) / 1000);
    const count = size(answer);
    if (count > 0) this.times.sizes.observe({ statement }, count);
    return answer;
  }

  planned(recordedAt: string): void {
    this.times.planning.observe(secondsSince(new Date(recordedAt)));
  }

  claimed(lanes: number, takenOver: number): void {
    this.counts.lanes.inc({ change: 'claimed' }, lanes);
    this.counts.lanes.inc({ change: 'taken_over' }, takenOver);
  }

  lostLane(): void {
    this.counts.lanes.inc({ change: 'lost' });
  }

  begins({ manual, tries, dueAt }: Attempt, pace: Pace): void {
    this.times.lag.observe({ pace }, secondsSince(dueAt));
    if (!manual && tries > 0) this.counts.retries.inc({ attempt: String(tries + 1) });
  }

  made({ manual, createdAt }: Attempt, outcome: Outcome, milliseconds: number): void {
    const kind = manual ? 'manual' : 'scheduled';
    this.times.attempts.observe({ result: attemptResult(outcome), kind }, milliseconds / 1000);
    if (isSuccess(outcome) && !manual) this.times.latency.observe(secondsSince(createdAt));
  }

  /** Counts what followed from an attempt, once that is recorded. */
  followed({ manual }: Attempt, outcome: Outcome, { delivery, subscription }: Next): void {
    if (!subscription.kept) this.subscriptionEnded('gone');
    else if ('disabled' in subscription) this.subscriptionEnded(subscription.disabled);
    if (manual || delivery.status === 'pending') return;
    this.over(delivery.status, reasonOf(outcome, delivery.status, subscription));
  }

  /** Deliveries that failed without an attempt: too old, or their subscription was disabled or deleted. */
  gaveUp(deliveries: number): void {
    this.over('failed', 'given_up', deliveries);
  }

  subscriptionEnded(reason: 'failing' | 'blocked_address' | 'gone', count = 1): void {
    this.counts.ended.inc({ reason }, count);
  }

  private over(status: string, reason: string, count = 1): void {
    this.counts.finished.inc({ status, reason }, count);
  }
}

function histograms(registers: Registry[]) {
  return {
    lag: new Histogram({
      name: 'inkpad_webhook_schedule_lag_seconds',
      help: 'How much later than planned attempts begin',
      labelNames: ['pace'],
      buckets: LATE,
      registers,
    }),
    attempts: new Histogram({
      name: 'inkpad_webhook_attempt_seconds',
      help: 'Duration of attempts by result: the class of the status, or what went wrong',
      labelNames: ['result', 'kind'],
      buckets: QUICK,
      registers,
    }),
    latency: new Histogram({
      name: 'inkpad_webhook_delivery_seconds',
      help: 'Time from the planning of a delivery to its 2xx',
      buckets: LATE,
      registers,
    }),
    planning: new Histogram({
      name: 'inkpad_webhook_planning_seconds',
      help: 'Time from the recording of an event to the planning of its deliveries',
      buckets: LATE,
      registers,
    }),
    seconds: new Histogram({
      name: 'inkpad_webhook_statement_seconds',
      help: 'Duration of the frequent database statements of dispatchers',
      labelNames: ['statement'],
      buckets: QUICK,
      registers,
    }),
    sizes: new Histogram({
      name: 'inkpad_webhook_statement_size',
      help: 'Lanes claimed, deliveries taken, attempts recorded and deliveries planned in one statement',
      labelNames: ['statement'],
      buckets: SIZES,
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
    lanes: new Counter({
      name: 'inkpad_webhook_queues_total',
      help: 'Lanes claimed, taken over from a dispatcher that has died, and lost to another dispatcher',
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

function reasonOf(outcome: Outcome, status: string, subscription: Next['subscription']): string {
  if (status === 'delivered') return 'answered';
  if (outcome.kind === 'missing') return outcome.kind;
  if (!subscription.kept) return 'gone';
  return 'disabled' in subscription ? subscription.disabled : 'attempts_used_up';
}

/** Never negative: clocks may differ slightly. */
function secondsSince(at: Date): number {
  return Math.max(0, (Date.now() - at.getTime()) / 1000);
}
