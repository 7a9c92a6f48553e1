type Waiting<T, R> = { item: T; resolve: (result: R) => void; reject: (error: unknown) => void };

/**
 * Collects items while its workers are busy and hands them over in groups: alone, an item goes at once;
 * under load, groups form by themselves. There is no timer, so nobody waits for company.
 * Items asked for in one turn of the event loop travel together.
 */
export class Batcher<T, R> {
  private waiting: Waiting<T, R>[] = [];
  private busy = 0;
  private scheduled = false;

  /**
   * @param run answers a group: one settled result for each item, in order
   */
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
        if (result === undefined) waiting.reject(new Error('a group must answer every item'));
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
