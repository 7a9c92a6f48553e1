import { isConnectionLoss, isDatabaseUnavailable } from '#platform/database/connection.js';
import { getMessageWithCause } from '#platform/kernel/errors.js';
import { retryUntil } from '#platform/kernel/retry-until.js';

const RETRY = { withinMs: 60_000, delayMs: 1_000 };

let isReported = false;

/** Repeats work after a lost connection to PostgreSQL or the event store: on a busy machine one may take too long. */
export function retryLostConnections<R>(work: () => Promise<R>): Promise<R> {
  const isRetriable = (error: unknown) => isDatabaseUnavailable(error) && report(error);
  return retryUntil({ ...RETRY, isRetriable }, work, (cause) => cause);
}

/** Repeats a first connection that took too long. One that is refused, or leads nowhere, fails at once. */
export function retrySlowConnection<R>(connect: () => Promise<R>): Promise<R> {
  const isRetriable = (error: unknown) =>
    isConnectionLoss(error) && /timeout/i.test(error.message) && report(error);
  return retryUntil({ ...RETRY, isRetriable }, connect, (cause) => cause);
}

/** Reports the first failure, since a minute without a word looks like a program that hangs. */
function report(error: unknown): true {
  if (!isReported) console.error(`${getMessageWithCause(error)}; trying again for up to a minute`);
  isReported = true;
  return true;
}
