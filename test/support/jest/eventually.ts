/**
 * Polls until the condition holds; reports the last value on timeout. Waits a tenth of the elapsed time between two reads, at
 * most 100 ms, because reads take the processor from what is waited for.
 */
export async function eventually<T>(
  read: () => Promise<T> | T,
  isFulfilled: (value: T) => boolean,
  withinMs = 120_000,
): Promise<T> {
  const start = Date.now();
  for (;;) {
    const value = await read();
    if (isFulfilled(value)) return value;
    const elapsedMs = Date.now() - start;
    if (elapsedMs > withinMs) {
      throw new Error(
        `the condition was not met within ${withinMs} ms; the last value was ${JSON.stringify(value)}`,
      );
    }
    const pauseMs = Math.min(100, Math.max(25, elapsedMs / 10), withinMs - elapsedMs + 1);
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}
