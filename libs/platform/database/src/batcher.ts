type Waiting<T, R> = { item: T; resolve: (result: R) => void; reject: (error: unknown) => void };

/**
 * Batches items without a timer: an item goes out at once while a worker is free, and batches form while all
 * are busy. Items added in the same turn of the event loop share a batch.
 */
export class Batcher<T, R> {
  private waiting: Waiting<T, R>[] = [];
  private busy = 0;
  private scheduled = false;

  /** @param run processes a batch and returns one settled result per item, in order */
  constructor(
    private readonly workers: number,
    private readonly groupSize: number,
    private readonly run: (items: T[]) => Promise<PromiseSettledResult<R>[]>,
  ) {}

  add(item: T): Promise<R> {
    return new Promise((resolve, reject) => {
      this.waiting.push({ item, resolve, reject });
      this.schedule();
    });
  }

  private schedule(): void {
    if (this.scheduled || this.busy >= this.workers || this.waiting.length === 0) return;
    this.scheduled = true;
    setImmediate(() => {
      this.scheduled = false;
      while (this.busy < this.workers && this.waiting.length > 0) {
        void this.runGroup(this.waiting.splice(0, this.groupSize));
      }
    });
  }

  private async runGroup(group: Waiting<T, R>[]): Promise<void> {
    this.busy++;
    try {
      const results = await this.run(group.map((waiting) => waiting.item));
      group.forEach((waiting, i) => {
        const result = results[i];
        if (result === undefined)
          waiting.reject(new Error('a batch must have a result for every item'));
        else if (result.status === 'fulfilled') waiting.resolve(result.value);
        else waiting.reject(result.reason);
      });
    } catch (error) {
      for (const waiting of group) waiting.reject(error);
    } finally {
      this.busy--;
      this.schedule();
    }
  }
}
