import { FirstAttempts, type Ordered } from './first-attempts.js';

/**
 * One subscription's part of the queue while a process owns it: what is sent next, and how many at once. Reads no
 * clock; the duration of attempts is passed in.
 */

/** Which group of slots a lane uses, so that bad receivers delay only each other. */
export type Pace = 'fast' | 'slow' | 'probe';

export type Queued = Ordered & {
  /** Scheduled attempts so far. */
  tries: number;
  /** A redelivery that somebody asked for; no order applies to it. */
  manual: boolean;
};

/** How an attempt went, as far as it affects the pace. */
export type Signal = 'success' | 'refusal' | 'overload' | 'silence';

const MOST_AT_ONCE = 16;
const SLOW_MS = 2_000;
/** If the backlog would take longer than this, one more attempt at once is allowed. */
const PATIENCE_MS = 1_000;
const SILENCES_TO_PROBE = 5;
const WEIGHT = 0.2;

export class DeliveryLane<D extends Queued> {
  pace: Pace;
  /** The queue holds more than is known here. */
  more = true;
  inFlight = 0;
  private cap = 1;
  private latencyMs = 0;
  private silences = 0;
  private again: D[] = [];
  private readonly firsts = new FirstAttempts<D>();
  private turn = 0;

  /** @param before the same lane, lost earlier: what follows an attempt that it has under way waits for its end */
  constructor(pace: Pace = 'fast', before?: DeliveryLane<D>) {
    this.pace = pace;
    for (const delivery of before?.firsts.begun ?? []) this.firsts.await(delivery);
  }

  get atOnce(): number {
    return this.pace === 'probe' ? 1 : this.cap;
  }

  /** Deliveries that are known here and not begun. */
  get known(): number {
    return this.again.length + this.firsts.known;
  }

  /** First attempts must come in the order of their ids, which is that of the events. */
  add(deliveries: D[]): void {
    for (const delivery of deliveries) {
      if (isFirst(delivery)) this.firsts.add(delivery);
      else this.again.push(delivery);
    }
  }

  /** The next delivery to send; undefined while none may go. */
  next(): D | undefined {
    if (this.inFlight >= this.atOnce) return undefined;
    const delivery =
      this.turn++ % 2 === 0
        ? (this.again.shift() ?? this.firsts.next())
        : (this.firsts.next() ?? this.again.shift());
    if (delivery) this.inFlight++;
    return delivery;
  }

  /**
   * The attempt is over. The next first attempt about its customer may go now: contract section 10 requires that the one
   * before is answered or has failed, not that this is recorded.
   * @param mayGrow whether the process has capacity for more attempts at once
   */
  done(delivery: D, signal: Signal, milliseconds: number, mayGrow: boolean): void {
    this.letGo(delivery);
    this.latencyMs =
      this.latencyMs === 0
        ? milliseconds
        : this.latencyMs + WEIGHT * (milliseconds - this.latencyMs);
    this.silences = signal === 'silence' ? this.silences + 1 : 0;
    if (signal === 'overload' || signal === 'silence') this.cap = Math.max(1, this.cap >> 1);
    if (signal === 'success' && mayGrow && this.isBehind()) {
      this.cap = Math.min(MOST_AT_ONCE, this.cap + 1);
    }
    if (this.silences >= SILENCES_TO_PROBE) this.pace = 'probe';
    else this.pace = signal === 'silence' || this.latencyMs > SLOW_MS ? 'slow' : 'fast';
  }

  /** The delivery is over without an attempt. */
  letGo(delivery: D): void {
    this.inFlight--;
    this.firsts.end(delivery);
  }

  /** An attempt that the lane had under way before it was lost is over. */
  endedElsewhere(delivery: D): void {
    this.firsts.end(delivery);
  }

  /** Drops what has not begun. @returns the dropped deliveries */
  clear(): D[] {
    const { again } = this;
    this.again = [];
    return [...again, ...this.firsts.clear()];
  }

  private isBehind(): boolean {
    return this.more || (this.known * this.latencyMs) / this.cap > PATIENCE_MS;
  }
}

function isFirst({ tries, manual }: Queued): boolean {
  return tries === 0 && !manual;
}
