import { UnknownOutcomeError } from '#kernel/errors.js';
import { retryUntil } from '#kernel/retry-until.js';
import { isConnectionLoss, isTransient } from '#database/connection.js';

/** How long and how often the outcome of a write is looked for before it is reported as unknown. */
export const SETTLING = { withinMs: 30_000, delayMs: 200 };

/**
 * Repeats idempotent work while it is unknown whether the database has done it. An erasure waits for that: a person is
 * not erased before their key is destroyed.
 * @param firstTry whether a failure of the first try may mean that nothing was written
 * @throws UnavailableError, UnknownOutcomeError
 */
export async function settle(work: () => Promise<void>, firstTry?: 'refusable'): Promise<void> {
  let isUnknown = !firstTry;
  const isRetriable = (error: unknown) =>
    (isUnknown ||= isConnectionLoss(error)) && isTransient(error);
  await retryUntil(
    { ...SETTLING, isRetriable },
    work,
    (cause) => new UnknownOutcomeError('what became of an intent stays unknown', { cause }),
  );
}
