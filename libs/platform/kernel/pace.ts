/** For how long other requests may wait for work that is done in parts. */
const MAX_HOLD_MS = 8;

/** Lets other work of the process come between the parts of a long one. */
export class Pace {
  private since = performance.now();

  /** Tells whether the event loop was held long enough. */
  isDue(): boolean {
    return performance.now() - this.since > MAX_HOLD_MS;
  }

  async giveWay(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    this.since = performance.now();
  }
}
