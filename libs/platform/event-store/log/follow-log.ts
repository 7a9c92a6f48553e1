import type { Logger } from '@nestjs/common';
import { getErrorMessage, getMessageWithCause } from '#platform/kernel/errors.js';
import { pause } from '#platform/kernel/pause.js';
import { isDatabaseUnavailable, isTransient } from '#platform/database/connection.js';
import { OvertakenError } from '../port/subscription-position.js';
import type { EventStore, Position, StoredEvent } from '../port/event-store.js';
import { UnknownEventTypeError } from '../port/event-types.js';

const RETRY_DELAYS_MS = { first: 500, longest: 30_000 };
/**
 * Before a batch that is not full, followers that gather events wait for so long: somebody may be waiting for what those
 * that gather nothing do, whose commits would be written to disk after theirs.
 */
const HEAD_START_MS = 20;
const DAY_MS = 24 * 3_600_000;
const REST_MS = 100;

export type LogFollower = {
  /** Maximum number of events in a batch. */
  batch: number;
  /** Minimum interval between batches while events arrive. The first batch after a quiet time comes almost at once. */
  gatherMs?: number;
  /** Reads where to continue, at the start and after every failure. */
  readPosition: () => Promise<Position>;
  /** Writes what follows from the events, and moves the position from `from` to `to` with it. */
  advance: (from: Position, events: StoredEvent[], to: Position) => Promise<void>;
  /** Moves the position past an event that fails. By default it blocks what comes after it. */
  postpone?: (from: Position, event: StoredEvent, to: Position, error: unknown) => Promise<void>;
  /** Tells whether to leave an event of an unknown type to another process; by default yes. */
  shouldStepDown?: () => boolean;
};

/**
 * Follows the log until the signal aborts, whatever happens to the database. Returns earlier only after an event of an
 * unknown type: during an upgrade another process may know it.
 */
export async function followLog(
  eventStore: EventStore,
  follower: LogFollower,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  const { batch, gatherMs = 0, readPosition, shouldStepDown = () => true } = follower;
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
            if (gatherMs > 0 && events.length < batch) await pause(HEAD_START_MS, signal);
            if (signal.aborted) return;
            await advance(follower, position, events, to, log);
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
 * Processes a batch, and event by event if that fails: a smaller part may take less than the time limit of a statement,
 * and what comes before an event that fails is not held up by it.
 */
async function advance(
  follower: LogFollower,
  from: Position,
  events: StoredEvent[],
  to: Position,
  log: Logger,
): Promise<void> {
  try {
    await follower.advance(from, events, to);
    return;
  } catch (error) {
    if (!isAboutEvents(error) || events.length === 0) throw error;
    if (error instanceof UnknownEventTypeError && events.length === 1) throw error;
    log.warn(
      `a batch of ${events.length} events failed and is repeated one by one: ${getErrorMessage(error)}`,
    );
  }
  let position = from;
  for (const event of events) {
    const next = event === events.at(-1) ? to : event.position;
    try {
      await follower.advance(position, [event], next);
    } catch (cause) {
      if (!isAboutEvents(cause) || cause instanceof UnknownEventTypeError) throw cause;
      if (!follower.postpone)
        throw new Error(`event ${event.id} blocks everything after it: ${getErrorMessage(cause)}`, {
          cause,
        });
      await follower.postpone(position, event, next, cause);
    }
    position = next;
  }
}

/** Tells whether an error may be due to the events, and not to the database or another process. */
export function isAboutEvents(error: unknown): boolean {
  return !(error instanceof OvertakenError || isDatabaseUnavailable(error));
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

/**
 * Works in parts, at the start and once a day, until the signal aborts, whatever happens to the database. Rests between
 * the parts, so that a first run over millions of rows takes no other work's place. Several processes may do it.
 * @param work does a part, and returns whether there may be more
 */
export async function workDaily(
  log: Logger,
  signal: AbortSignal,
  work: () => Promise<boolean>,
): Promise<void> {
  await retryUntilAborted(log, signal, async (onSuccess) => {
    const hasMore = await work();
    onSuccess();
    await pause(hasMore ? REST_MS : DAY_MS, signal);
  });
}
