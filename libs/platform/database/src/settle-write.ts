import { setTimeout as wait } from 'node:timers/promises';
import { UnknownOutcomeError } from '#kernel/errors.js';
import { isConnectionLoss, isTransient } from './connection.js';

/** How long a write is repeated whose outcome is unknown. */
export const SETTLE_WITHIN_MS = 30_000;

/**
 * Decides whether a write is repeated after an error.
 * @param wasUnknown whether an earlier try may have written
 * @param elapsedMs since the first try
 * @returns whether a try may have written by now
 * @throws what the caller gets, when it is not repeated
 */
export type AssertRepeatable = (error: unknown, wasUnknown: boolean, elapsedMs: number) => boolean;

/**
 * Repeats a write while its outcome is unknown, because a failure that is reported would be taken for one that wrote
 * nothing. A try must do no harm after one that has written. Goes by a clock that nobody sets back.
 * @param options isUnknown: an earlier try may have written; startedAt: of the first try, by `performance.now()`
 * @throws UnknownOutcomeError
 */
export async function settleWrite<R>(
  attempt: (isUnknown: boolean) => Promise<R>,
  options: { isUnknown?: boolean; startedAt?: number; assertRepeatable?: AssertRepeatable } = {},
): Promise<R> {
  const { startedAt = performance.now(), assertRepeatable = assertUnknown } = options;
  let { isUnknown = false } = options;
  for (let tries = 0; ; tries++) {
    try {
      return await attempt(isUnknown);
    } catch (cause) {
      const elapsedMs = performance.now() - startedAt;
      isUnknown = assertRepeatable(cause, isUnknown, elapsedMs);
      if (isUnknown && elapsedMs > SETTLE_WITHIN_MS) {
        throw new UnknownOutcomeError('the outcome of a write stays unknown', { cause });
      }
      await wait(Math.min(50 * 2 ** tries, 1_000));
    }
  }
}

/**
 * Repeats only what may have been written: after a lost connection, until the database says more than that it is
 * unavailable.
 */
export const assertUnknown: AssertRepeatable = (error, wasUnknown) => {
  if (wasUnknown ? isTransient(error) : isConnectionLoss(error)) return true;
  throw error;
};
