/** One reading of the database's clock. `sentAt` and `receivedAt` are of the monotonic clock of this process. */
export type ClockSample = { databaseMs: number; sentAt: number; receivedAt: number };

/** @property offsetMs database's time minus monotonic time */
type Estimate = { offsetMs: number; uncertaintyMs: number; measuredAt: number };

/** By how much two clocks may drift apart: 0.2 ms a second, ten times as much as usual ones do. */
const MAX_DRIFT = 0.0002;
/** Speed of this clock while it is ahead of the database's. */
const SLOW_SPEED = 0.5;
/** A longer lead is not waited for: receivers refuse signatures whose time is five minutes off. */
const MAX_LEAD_MS = 60_000;

/** Bound once, so that a test that replaces `performance.now` does not move the clock of its process. */
const readPerformanceNow = performance.now.bind(performance);

/**
 * Tells the database's time without asking the database (ADR-0098): an offset that was measured, plus the monotonic time
 * of this process. So a wrong clock of this machine changes nothing, however it jumps. Goes back only when it is more than a
 * minute ahead of the database. Until the first measurement, as in a script without a database, it is the machine's clock.
 */
export class Clock {
  private estimate: Estimate | undefined;
  /** What was told last, and when by the monotonic clock. */
  private lastMs = -Infinity;
  private lastAt = 0;

  constructor(
    private readonly getMonotonicMs: () => number = readPerformanceNow,
    private readonly getMachineMs: () => number = () => Date.now(),
  ) {}

  /** Returns the time in ms since 1970. */
  getMs(): number {
    if (!this.estimate) return this.getMachineMs();
    const at = this.getMonotonicMs();
    const slowed = this.lastMs + (at - this.lastAt) * SLOW_SPEED;
    const ms = at + this.estimate.offsetMs;
    this.lastMs = ms < slowed ? slowed : ms;
    this.lastAt = at;
    return Math.floor(this.lastMs);
  }

  /**
   * Takes a measurement into account if it is more precise than the current one, or contradicts it.
   * @returns by how many ms the database's clock has jumped; 0 if it has not
   */
  addSample({ databaseMs, sentAt, receivedAt }: ClockSample): number {
    // The clock was read at some time in between, so half of the round trip is the largest possible error.
    const uncertaintyMs = (receivedAt - sentAt) / 2;
    const offsetMs = databaseMs - (sentAt + receivedAt) / 2;
    const { estimate } = this;
    const drift = estimate ? (receivedAt - estimate.measuredAt) * MAX_DRIFT : 0;
    const currentUncertaintyMs = estimate ? estimate.uncertaintyMs + drift : Infinity;
    const jumpMs = estimate ? offsetMs - estimate.offsetMs : 0;
    const hasJumped = Math.abs(jumpMs) > uncertaintyMs + currentUncertaintyMs;
    if (hasJumped || uncertaintyMs <= currentUncertaintyMs) {
      this.estimate = { offsetMs, uncertaintyMs, measuredAt: receivedAt };
      if (this.lastMs - receivedAt - offsetMs > MAX_LEAD_MS) this.lastMs = -Infinity;
    }
    return hasJumped ? jumpMs : 0;
  }

  /** Returns by how many ms the clock of this machine is ahead of the database's; negative if it is behind. */
  getMachineOffsetMs(): number {
    if (!this.estimate) return 0;
    return this.getMachineMs() - this.getMonotonicMs() - this.estimate.offsetMs;
  }
}

/** The clock of this process. Like the one of its machine, there is one, whoever asks. */
export const clock = new Clock();

/** Returns the current time by the database's clock: for everything that is stored, compared, signed or shown. */
export function getNow(): Date {
  return new Date(clock.getMs());
}

/** Returns the current time by the database's clock in ms since 1970. */
export function getNowMs(): number {
  return clock.getMs();
}
