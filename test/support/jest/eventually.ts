/** Polls until the condition holds; reports the last value on timeout. */
export async function eventually<T>(
  ask: () => Promise<T> | T,
  holds: (answer: T) => boolean,
  withinMs = 120_000,
): Promise<T> {
  const deadline = Date.now() + withinMs;
  for (;;) {
    const answer = await ask();
    if (holds(answer)) return answer;
    if (Date.now() > deadline) {
      throw new Error(`still not so after ${withinMs} ms: ${JSON.stringify(answer)}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}
