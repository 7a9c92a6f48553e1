import { FirstAttempts, type OrderedDelivery } from './first-attempts.js';

/**
 * One subscription's part of the queue while a process owns it: what is sent next, and how many at once. Reads no
 * clock; the duration of attempts is passed in.
 */

/** Which group of slots a queue uses, so that bad receivers delay only each other. */
export type Tier = 'fast' | 'slow' | 'probe';

export type QueuedDelivery = OrderedDelivery & {
  /** Scheduled attempts so far. */
  tries: number;
  /** A redelivery that somebody asked for; no order applies to it. */
  manual: boolean;
};

/** How an attempt went, as far as it affects the tier. */
export type Signal = 'success' | 'refusal' | 'overload' | 'silence';

const MAX_CONCURRENCY = 16;
const SLOW_MS = 2_000;
/** If the backlog would take longer than this, one more attempt at once is allowed. */
const MAX_BACKLOG_MS = 1_000;
const SILENCES_BEFORE_PROBE = 5;
const LATENCY_WEIGHT = 0.2;

export class DeliveryQueue<D extends QueuedDelivery> {
  tier: Tier;
  /** The queue holds more than is known here. */
  hasMore = true;
  inFlight = 0;
  private maxConcurrency = 1;
  private averageLatencyMs = 0;
  private silenceCount = 0;
  private retries: D[] = [];
  private readonly firstAttempts = new FirstAttempts<D>();
  private turnCount = 0;

  /** @param previous the same queue, lost earlier: what follows an attempt that it has under way waits for its end */
  constructor(tier: Tier = 'fast', previous?: DeliveryQueue<D>) {
    this.tier = tier;
    for (const delivery of previous?.firstAttempts.inProgress ?? [])
      this.firstAttempts.waitFor(delivery);
  }

  get concurrency(): number {
    return this.tier === 'probe' ? 1 : this.maxConcurrency;
  }

  /** Deliveries that are known here and not begun. */
  get waitingCount(): number {
    return this.retries.length + this.firstAttempts.waitingCount;
  }

  /** First attempts must come in the order of their ids, which is that of the events. */
  add(deliveries: D[]): void {
    for (const delivery of deliveries) {
      if (isFirstAttempt(delivery)) this.firstAttempts.add(delivery);
      else this.retries.push(delivery);
    }
  }

  /** The next delivery to send; undefined while none may go. */
  next(): D | undefined {
    if (this.inFlight >= this.concurrency) return undefined;
    const delivery =
      this.turnCount++ % 2 === 0
        ? (this.retries.shift() ?? this.firstAttempts.next())
        : (this.firstAttempts.next() ?? this.retries.shift());
    if (delivery) this.inFlight++;
    return delivery;
  }

  /**
   * The attempt is over. The next first attempt about its customer may go now: the order requires that the one
   * before has got a response or has failed, not that this is recorded.
   * @param canGrow whether the process has capacity for more attempts at once
   */
  finishAttempt(delivery: D, signal: Signal, milliseconds: number, canGrow: boolean): void {
    this.skip(delivery);
    this.averageLatencyMs =
      this.averageLatencyMs === 0
        ? milliseconds
        : this.averageLatencyMs + LATENCY_WEIGHT * (milliseconds - this.averageLatencyMs);
    this.silenceCount = signal === 'silence' ? this.silenceCount + 1 : 0;
    if (signal === 'overload' || signal === 'silence')
      this.maxConcurrency = Math.max(1, this.maxConcurrency >> 1);
    if (signal === 'success' && canGrow && this.isBehind()) {
      this.maxConcurrency = Math.min(MAX_CONCURRENCY, this.maxConcurrency + 1);
    }
    if (this.silenceCount >= SILENCES_BEFORE_PROBE) this.tier = 'probe';
    else this.tier = signal === 'silence' || this.averageLatencyMs > SLOW_MS ? 'slow' : 'fast';
  }

  /** The delivery is over without an attempt. */
  skip(delivery: D): void {
    this.inFlight--;
    this.firstAttempts.end(delivery);
  }

  /** An attempt that the queue had under way before it was lost is over. */
  endElsewhere(delivery: D): void {
    this.firstAttempts.end(delivery);
  }

  /** Drops what has not begun. @returns the dropped deliveries */
  clear(): D[] {
    const { retries } = this;
    this.retries = [];
    return [...retries, ...this.firstAttempts.clear()];
  }

  private isBehind(): boolean {
    return (
      this.hasMore ||
      (this.waitingCount * this.averageLatencyMs) / this.maxConcurrency > MAX_BACKLOG_MS
    );
  }
}

function isFirstAttempt({ tries, manual }: QueuedDelivery): boolean {
  return tries === 0 && !manual;
}
