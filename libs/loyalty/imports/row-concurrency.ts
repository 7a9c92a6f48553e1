/**
 * Does work on items, at most some of them at once and in their order. After an error, or once the signal aborts, it begins no
 * more and lets those end that have begun; then it throws the error.
 */
export async function runConcurrently<T>(
  items: readonly T[],
  concurrency: number,
  work: (item: T) => Promise<void>,
  signal?: AbortSignal,
): Promise<void> {
  const remaining = items.values();
  const errors: unknown[] = [];
  const takeItems = async () => {
    for (const item of remaining) {
      if (errors.length > 0 || signal?.aborted) return;
      try {
        await work(item);
      } catch (error) {
        errors.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: concurrency }, takeItems));
  if (errors.length > 0) throw errors[0];
}
