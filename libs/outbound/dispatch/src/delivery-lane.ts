/**
 * One subscription's part of the queue while a process owns it: what goes next, and how many at once.
 * Knows nothing of time; how long attempts took enters as arguments.
 */

/** Which share of a process's attempts a lane draws on, so that bad receivers hold up only each other. */
export type Pace = 'fast' | 'slow' | 'probe';

export type Queued = {
  id: number;
  customerId: number;
  /** Scheduled attempts so far. */
  tries: number;
  /** Asked for by a person: no order applies to it. */
  manual: boolean;
};

/** How an attempt went, as far as the pace depends on it. */
export type Signal = 'success' | 'refusal' | 'overload' | 'silence';

const MOST_AT_ONCE = 16;
const SLOW_MS = 2_000;
/** So long may a backlog take before one more attempt at once is allowed. */
const PATIENCE_MS = 1_000;
const SILENCES_TO_PROBE = 5;
const WEIGHT = 0.2;

export class DeliveryLane<D extends Queued> {
  pace: Pace;
  /** There is more in the queue than is known here. */
  more = true;
  inFlight = 0;
  private cap = 1;
  private latencyMs = 0;
  private silences = 0;
  private again: D[] = [];
  private firsts: D[] = [];
  /** Waited, and may go now. */
  private released: D[] = [];
  /** Customers whose first attempt is under way, and what waits for its end. */
  private readonly busy = new Map<number, D[]>();
  private waiting = 0;
  private turn = 0;

  constructor(pace: Pace = 'fast') {
    this.pace = pace;
  }

  get atOnce(): number {
    return this.pace === 'probe' ? 1 : this.cap;
  }

  /** Known and not begun. */
  get known(): number {
    return this.again.length + this.released.length + this.firsts.length + this.waiting;
  }

  /** First attempts in the order of their ids, which is that of the events. */
  add(deliveries: D[]): void {
    for (const delivery of deliveries) {
      if (isFirst(delivery)) this.firsts.push(delivery);
      else this.again.push(delivery);
    }
  }

  /** The next to send, or nothing while there is none that may go now. */
  next(): D | undefined {
    if (this.inFlight >= this.atOnce) return undefined;
    const delivery =
      this.turn++ % 2 === 0
        ? (this.again.shift() ?? this.nextFirst())
        : (this.nextFirst() ?? this.again.shift());
    if (delivery) this.inFlight++;
    return delivery;
  }

  /**
   * The attempt is over. Its customer's next first attempt may go then: contract section 10 wants the
   * one before answered or failed, not recorded.
   * @param mayGrow whether the process has strength left for more at once
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

  /** Over without an attempt. */
  letGo(delivery: D): void {
    this.inFlight--;
    if (!isFirst(delivery)) return;
    const following = this.busy.get(delivery.customerId)?.shift();
    if (following === undefined) this.busy.delete(delivery.customerId);
    else {
      this.waiting--;
      this.released.push(following);
    }
  }

  /** Forgets what has not begun. @returns it */
  clear(): D[] {
    const behind = [...this.busy.values()].flat();
    const dropped = [...this.again, ...this.released, ...this.firsts, ...behind];
    for (const { customerId } of this.released) this.busy.delete(customerId);
    for (const list of this.busy.values()) list.length = 0;
    this.again = [];
    this.released = [];
    this.firsts = [];
    this.waiting = 0;
    return dropped;
  }

  private nextFirst(): D | undefined {
    const released = this.released.shift();
    if (released) return released;
    for (;;) {
      const delivery = this.firsts.shift();
      if (!delivery) return undefined;
      const behind = this.busy.get(delivery.customerId);
      if (!behind) {
        this.busy.set(delivery.customerId, []);
        return delivery;
      }
      behind.push(delivery);
      this.waiting++;
    }
  }

  private isBehind(): boolean {
    return this.more || (this.known * this.latencyMs) / this.cap > PATIENCE_MS;
  }
}

function isFirst({ tries, manual }: Queued): boolean {
  return tries === 0 && !manual;
}
