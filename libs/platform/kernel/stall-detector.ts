const MAX_DURATION_MS = 60_000;

/** Detects work that never finishes, which otherwise would log nothing. */
export class StallDetector {
  private readonly startTimes = new Map<symbol, number>();

  constructor(private readonly now: () => number = () => performance.now()) {}

  /** Watches one iteration of a loop, or other work that never takes a minute. */
  async watch<R>(work: () => Promise<R>): Promise<R> {
    const iteration = Symbol();
    this.startTimes.set(iteration, this.now());
    try {
      return await work();
    } finally {
      this.startTimes.delete(iteration);
    }
  }

  get isStuck(): boolean {
    const deadline = this.now() - MAX_DURATION_MS;
    return [...this.startTimes.values()].some((startedAt) => startedAt < deadline);
  }
}
