import { setTimeout as wait } from 'node:timers/promises';
import { UnknownOutcomeError } from '#platform/kernel/errors.js';
import { isConnectionLoss, isTransient } from './connection.js';

/** How long a write is repeated whose outcome is unknown. */
export const RETRY_WITHIN_MS = 30_000;

/**
 * Tells whether a write may have happened, after an error of a try. It is tried again in both cases.
 * @param wasUnknown whether an earlier try may have written
 * @param elapsedMs since the first try
 * @throws what the caller gets, when it is not tried again
 */
export type IsUnknownAfter = (error: unknown, wasUnknown: boolean, elapsedMs: number) => boolean;

/**
 * Repeats a write while its outcome is unknown, because a failure that is reported would be taken for one that wrote
 * nothing. A try must do no harm after one that has written. Goes by a clock that nobody sets back.
 * @param options isUnknown: an earlier try may have written; startedAt: of the first try, by `performance.now()`
 * @throws UnknownOutcomeError
 */
export function retryWhileUnknown<R>(
  attempt: (isUnknown: boolean) => Promise<R>,
  options: { isUnknown?: boolean; startedAt?: number; isUnknownAfter?: IsUnknownAfter } = {},
): Promise<R> {
  const { startedAt = performance.now(), isUnknownAfter = isUnknownAfterLoss } = options;
  let { isUnknown = false } = options;
  let tries = 0;
  const retry = async (cause: unknown): Promise<R> => {
    const elapsedMs = performance.now() - startedAt;
    isUnknown = isUnknownAfter(cause, isUnknown, elapsedMs);
    if (isUnknown && elapsedMs > RETRY_WITHIN_MS) {
      throw new UnknownOutcomeError('the outcome of a write stays unknown', { cause });
    }
    await wait(Math.min(50 * 2 ** tries++, 1_000));
    return attempt(isUnknown).catch(retry);
  };
  // Not async: every append makes one, and nearly none is tried again.
  return attempt(isUnknown).catch(retry);
}

/**
 * Repeats only what may have been written: after a lost connection, until the database says more than that it is
 * unavailable.
 */
export const isUnknownAfterLoss: IsUnknownAfter = (error, wasUnknown) => {
  if (wasUnknown ? isTransient(error) : isConnectionLoss(error)) return true;
  throw error;
};
