import { setTimeout as wait } from 'node:timers/promises';
import { UnavailableError } from '#kernel/errors.js';

const RETRY_DELAY_MS = 1_000;

/**
 * Repeats work while the event store is unavailable. Long work that can be repeated in parts must not fail because the
 * event store is too busy to respond, or changes its leader.
 * @throws UnavailableError when it stays unavailable
 */
export async function retryUntilAvailable<R>(
  work: () => Promise<R>,
  withinMs = 120_000,
): Promise<R> {
  for (const deadline = performance.now() + withinMs; ;) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof UnavailableError) || performance.now() > deadline) throw error;
      await wait(RETRY_DELAY_MS);
    }
  }
}
