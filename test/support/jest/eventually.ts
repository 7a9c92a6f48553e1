/** Polls until the condition holds; reports the last value on timeout. */
export async function eventually<T>(
  read: () => Promise<T> | T,
  isFulfilled: (value: T) => boolean,
  withinMs = 120_000,
): Promise<T> {
  const deadline = Date.now() + withinMs;
  for (;;) {
    const value = await read();
    if (isFulfilled(value)) return value;
    if (Date.now() > deadline) {
      throw new Error(
        `the condition was not met within ${withinMs} ms; the last value was ${JSON.stringify(value)}`,
      );
    }
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}
