import { UnavailableError } from './errors.js';
import { pause } from './pause.js';

/** The result of work that has to be repeated. */
export const RETRY = Symbol('retry');

const NEVER = new AbortController().signal;

/**
 * Repeats work until it has a result. Goes by a clock that nobody sets back.
 * @param options delayMs: the time between two tries; isRetriable: tells which errors mean the same as `RETRY`, by
 *   default none; signal: ends the waiting
 * @param createError creates what is thrown when the last try ends after the deadline, or the waiting was ended
 */
export async function retryUntil<R>(
  options: {
    withinMs: number;
    delayMs: number;
    isRetriable?: (error: unknown) => boolean;
    signal?: AbortSignal;
  },
  work: () => Promise<R | typeof RETRY>,
  createError: (cause: unknown) => unknown,
): Promise<R> {
  const { withinMs, delayMs, isRetriable = () => false, signal = NEVER } = options;
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
    if (performance.now() > deadline || signal.aborted) throw createError(cause);
    await pause(delayMs, signal);
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
