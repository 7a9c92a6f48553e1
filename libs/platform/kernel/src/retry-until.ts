import { setTimeout as wait } from 'node:timers/promises';
import { UnavailableError } from './errors.js';

/** The result of work that has to be repeated. */
export const RETRY = Symbol('retry');

/**
 * Repeats work until it has a result. Goes by a clock that nobody sets back.
 * @param options delayMs: the time between two tries; isRetriable: tells which errors mean the same as `RETRY`, by
 *   default none
 * @param createError creates what is thrown when the last try ends after the deadline
 */
export async function retryUntil<R>(
  options: {
    withinMs: number;
    delayMs: number;
    isRetriable?: (error: unknown) => boolean;
  },
  work: () => Promise<R | typeof RETRY>,
  createError: (cause: unknown) => unknown,
): Promise<R> {
  const { withinMs, delayMs, isRetriable = () => false } = options;
  const deadline = performance.now() + withinMs;
  for (;;) {
    let cause: unknown;
    try {
      const result = await work();
      if (result !== RETRY) return result as R;
    } catch (error) {
      if (!isRetriable(error)) throw error;
      cause = error;
    }
    if (performance.now() > deadline) throw createError(cause);
    await wait(delayMs);
  }
}

/**
 * Repeats work while the event store is unavailable. Long work that can be repeated in parts must not fail because the
 * event store is too busy to respond, or changes its leader.
 * @throws UnavailableError when it stays unavailable
 */
export function retryUntilAvailable<R>(work: () => Promise<R>, withinMs = 120_000): Promise<R> {
  const isRetriable = (error: unknown) => error instanceof UnavailableError;
  return retryUntil({ withinMs, delayMs: 1_000, isRetriable }, work, (cause) => cause);
}
