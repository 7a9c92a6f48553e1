import type { Logger } from '@nestjs/common';
import { getErrorMessage } from '#kernel/errors.js';
import { pause } from '#kernel/pause.js';
import { isTransient } from '#database/connection.js';
import { OvertakenError } from '../port/checkpoint.js';
import type { EventStore, Position, StoredEvent } from '../port/event-store.js';
import { UnknownEventTypeError } from '../port/event-types.js';

const RETRY_DELAYS_MS = { first: 500, longest: 30_000 };

export type LogFollower = {
  /** How many events to be given at a time, at most. */
  batch: number;
  /** While events flow, how often a batch comes at most; the first after a quiet time comes at once. */
  gatherMs?: number;
  /** Where to go on. Asked at the start and after every failure. */
  readPosition: () => Promise<Position>;
  /** Writes what follows from the events, and moves the checkpoint from `from` to `to` with it. */
  advance: (from: Position, events: StoredEvent[], to: Position) => Promise<void>;
  /** Whether somebody else should try instead when an event's type is unknown; by default yes. */
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

/**
 * Does work again and again until the signal aborts. After a failure it waits, longer each time until the work has
 * said that it succeeded.
 */
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
      const message = `${getErrorMessage(error)}; next try in ${delayMs} ms`;
      if (isTransient(error)) log.warn(message);
      else log.error(message, isUnknownType || !(error instanceof Error) ? undefined : error.stack);
      await pause(delayMs, signal);
      if (isUnknownType && shouldStepDown()) return;
      delayMs = Math.min(2 * delayMs, RETRY_DELAYS_MS.longest);
    }
  }
}
