const MAX_DURATION_MS = 60_000;

/** Notices work that never finishes: whatever waits forever answers nobody and logs nothing. */
export class StallDetector {
  private readonly startTimes = new Map<symbol, number>();

  constructor(private readonly now: () => number = () => performance.now()) {}

  /** For one turn of a loop, or anything else that never takes a minute. */
  async watch<R>(work: () => Promise<R>): Promise<R> {
    const turn = Symbol();
    this.startTimes.set(turn, this.now());
    try {
      return await work();
    } finally {
      this.startTimes.delete(turn);
    }
  }

  get isStuck(): boolean {
    const deadline = this.now() - MAX_DURATION_MS;
    return [...this.startTimes.values()].some((startedAt) => startedAt < deadline);
  }
}
