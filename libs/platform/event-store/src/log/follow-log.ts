import type { Logger } from '@nestjs/common';
import { getMessageWithCause } from '#kernel/errors.js';
import { pause } from '#kernel/pause.js';
import { isTransient } from '#database/connection.js';
import { OvertakenError } from '../port/checkpoint.js';
import type { EventStore, Position, StoredEvent } from '../port/event-store.js';
import { UnknownEventTypeError } from '../port/event-types.js';

const RETRY_DELAYS_MS = { first: 500, longest: 30_000 };

export type LogFollower = {
  /** Maximum number of events in a batch. */
  batch: number;
  /** Minimum interval between batches while events arrive. The first batch after a quiet time comes at once. */
  gatherMs?: number;
  /** Reads where to continue, at the start and after every failure. */
  readPosition: () => Promise<Position>;
  /** Writes what follows from the events, and moves the checkpoint from `from` to `to` with it. */
  advance: (from: Position, events: StoredEvent[], to: Position) => Promise<void>;
  /** Tells whether to leave an event of an unknown type to another process; by default yes. */
  shouldStepDown?: () => boolean;
};

/**
 * Follows the log until the signal aborts, whatever happens to the database. Returns earlier only after an event of an
 * unknown type: during an upgrade another process may know it.
 */
export async function followLog(
  eventStore: EventStore,
  { batch, gatherMs = 0, readPosition, advance, shouldStepDown = () => true }: LogFollower,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  await retryUntilAborted(
    log,
    signal,
    async (onSuccess) => {
      try {
        let position = await readPosition();
        await eventStore.subscribe({
          after: position,
          batch,
          signal,
          onEvents: async (events, to) => {
            const startedAt = performance.now();
            await advance(position, events, to);
            position = to;
            onSuccess();
            const remainingMs = startedAt + gatherMs - performance.now();
            if (events.length < batch && remainingMs > 0) await pause(remainingMs, signal);
          },
        });
      } catch (error) {
        if (!(error instanceof OvertakenError)) throw error;
      }
    },
    shouldStepDown,
  );
}

/** Repeats work until the signal aborts. Waits after a failure, longer each time, until the work reports a success. */
export async function retryUntilAborted(
  log: Logger,
  signal: AbortSignal,
  work: (onSuccess: () => void) => Promise<void>,
  shouldStepDown = () => false,
): Promise<void> {
  let delayMs = RETRY_DELAYS_MS.first;
  const onSuccess = () => (delayMs = RETRY_DELAYS_MS.first);
  while (!signal.aborted) {
    try {
      await work(onSuccess);
    } catch (error) {
      const isUnknownType = error instanceof UnknownEventTypeError;
      const message = `${getMessageWithCause(error)}; next try in ${delayMs} ms`;
      if (isTransient(error)) log.warn(message);
      else log.error(message, isUnknownType || !(error instanceof Error) ? undefined : error.stack);
      await pause(delayMs, signal);
      if (isUnknownType && shouldStepDown()) return;
      delayMs = Math.min(2 * delayMs, RETRY_DELAYS_MS.longest);
    }
  }
}
