/** Asks again until it holds; says what it last saw when the time is up. */
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
