/** How operations run together: those that share a key run one after another, in their order. */
export type OrderedRun<T, R> = {
  getKeys: (operation: T) => string[];
  /** Maximum number of operations that run at the same time. */
  concurrency: number;
  run: (operation: T) => Promise<R>;
};

/**
 * Runs operations, as many at a time as may be. When one of them fails, the others still run to their end.
 * @returns the results, in the order of the operations
 * @throws the error of the first one that failed
 */
export async function runInOrder<T, R>(
  operations: readonly T[],
  { getKeys, concurrency, run }: OrderedRun<T, R>,
): Promise<R[]> {
  const slots = new Slots(concurrency);
  const last = new Map<string, Promise<unknown>>();
  const outcomes = operations.map((operation) => {
    const keys = getKeys(operation);
    const earlier = Promise.allSettled(keys.map((key) => last.get(key)));
    const outcome = earlier.then(() => slots.use(() => run(operation)));
    for (const key of keys) last.set(key, outcome);
    return outcome;
  });
  await Promise.allSettled(outcomes);
  return Promise.all(outcomes);
}

/** Limits how many tasks run at a time; the others wait in order of arrival. */
class Slots {
  private readonly waiting: (() => void)[] = [];

  constructor(private freeCount: number) {}

  async use<R>(work: () => Promise<R>): Promise<R> {
    if (this.freeCount > 0) this.freeCount--;
    else await new Promise<void>((start) => this.waiting.push(start));
    try {
      return await work();
    } finally {
      const next = this.waiting.shift();
      if (next) next();
      else this.freeCount++;
    }
  }
}
