import type { Logger } from '@nestjs/common';
import { messageOf } from '#kernel/errors.js';
import { pause } from '#kernel/pause.js';
import { isPassing } from '#database/connection.js';
import { OvertakenError } from '../port/checkpoint.js';
import type { EventStore, Position, StoredEvent } from '../port/event-store.js';
import { UnknownEventTypeError } from '../port/event-types.js';

const BACK_OFF_MS = { first: 500, longest: 30_000 };

export type LogFollower = {
  /** How many events to be given at a time, at most. */
  batch: number;
  /** While events flow, how often a batch comes at most; the first after a quiet time comes at once. */
  gatherMs?: number;
  /** Where to go on. Asked at the start and after every failure. */
  reached: () => Promise<Position>;
  /** Writes what follows from the events, and moves the checkpoint from `from` to `to` with it. */
  advance: (from: Position, events: StoredEvent[], to: Position) => Promise<void>;
  /** Whether somebody else should try instead when an event's type is unknown; by default yes. */
  stepsDown?: () => boolean;
};

/**
 * Follows the log until the signal aborts, whatever happens to the database. Returns earlier only after an event of an
 * unknown type: during an upgrade another process may know it.
 */
export async function followLog(
  store: EventStore,
  { batch, gatherMs = 0, reached, advance, stepsDown = () => true }: LogFollower,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  await retrying(
    log,
    signal,
    async (succeeded) => {
      try {
        let position = await reached();
        await store.subscribe({
          after: position,
          batch,
          signal,
          onEvents: async (events, to) => {
            const began = performance.now();
            await advance(position, events, to);
            position = to;
            succeeded();
            const left = began + gatherMs - performance.now();
            if (events.length < batch && left > 0) await pause(left, signal);
          },
        });
      } catch (error) {
        if (!(error instanceof OvertakenError)) throw error;
      }
    },
    stepsDown,
  );
}

/**
 * Does work again and again until the signal aborts. After a failure it waits, longer each time until the work has
 * said that it succeeded.
 */
export async function retrying(
  log: Logger,
  signal: AbortSignal,
  work: (succeeded: () => void) => Promise<void>,
  stepsDown = () => false,
): Promise<void> {
  let backOff = BACK_OFF_MS.first;
  const succeeded = () => (backOff = BACK_OFF_MS.first);
  while (!signal.aborted) {
    try {
      await work(succeeded);
    } catch (error) {
      const unknown = error instanceof UnknownEventTypeError;
      const message = `${messageOf(error)}; next try in ${backOff} ms`;
      if (isPassing(error)) log.warn(message);
      else log.error(message, unknown || !(error instanceof Error) ? undefined : error.stack);
      await pause(backOff, signal);
      if (unknown && stepsDown()) return;
      backOff = Math.min(2 * backOff, BACK_OFF_MS.longest);
    }
  }
}
