const STUCK_MS = 60_000;

/** Notices work that never finishes: whatever waits forever answers nobody and logs nothing. */
export class StallDetector {
  private readonly begun = new Map<symbol, number>();

  constructor(private readonly now: () => number = () => performance.now()) {}

  /** For one turn of a loop, or anything else that never takes a minute. */
  async during<R>(work: () => Promise<R>): Promise<R> {
    const turn = Symbol();
    this.begun.set(turn, this.now());
    try {
      return await work();
    } finally {
      this.begun.delete(turn);
    }
  }

  get isStuck(): boolean {
    const earliest = this.now() - STUCK_MS;
    return [...this.begun.values()].some((begun) => begun < earliest);
  }
}
