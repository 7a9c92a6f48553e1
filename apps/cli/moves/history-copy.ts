import { setTimeout as wait } from 'node:timers/promises';
import { ConfigError } from '#platform/kernel/config-error.js';
import { UnavailableError } from '#platform/kernel/errors.js';
import { retryUntilAvailable } from '#platform/kernel/retry-until.js';
import {
  BEGINNING,
  type EventStore,
  type Head,
  type Position,
  type StoredEvent,
} from '#platform/event-store/port/event-store.js';
import { continueStreams, type HistoryWriter } from '#platform/event-store/port/history-writer.js';
import { readLog } from '#platform/event-store/log/read-log.js';
import { formatPosition, isAfter } from '#platform/event-store/port/position.js';
import type { Progress } from '../progress.js';

const BATCH = 1_000;
const RETRIES = { max: 60, everyMs: 1_000 };
const READABLE_WITHIN_MS = 30_000;
const READABLE_EVERY_MS = 50;

/** @property writer writes to `target` */
export type Engines = { from: EventStore; target: EventStore; writer: HistoryWriter };

/**
 * @property copied how many of the events the target did not have before
 * @property heads the end of each stream
 * @property end the position of the last event in the target
 * @property targetPositions those of all events in the target, in the order of the log: commit, prepare, commit, …
 * @property newPositions for each of the positions asked for, that of the last event at or before it in the target; null:
 *   there is none
 */
export type CopiedHistory = {
  events: number;
  copied: number;
  heads: Map<string, Head>;
  end: Position;
  targetPositions: BigUint64Array[];
  newPositions: Map<string, Position | null>;
};

/**
 * Copies a history to another engine in one pass. What the target has already is compared with the source, event by
 * event; what it lacks is appended in batches and read back. So both have the same events in the same order afterwards.
 * May be killed at any time and run again.
 * @param positions of the source, to be mapped
 * @throws ConfigError when the target has other events, or the same in another order
 */
export async function copyHistory(
  { from, target, writer }: Engines,
  positions: Position[],
  progress: Progress,
): Promise<CopiedHistory> {
  const copy = new Copy(target, writer, positions);
  for await (const page of readLog(from, BATCH)) {
    await copy.add(page);
    progress.add(page.length);
  }
  const copied = await copy.finish();
  progress.end();
  return copied;
}

class Copy {
  private readonly heads = new Map<string, Head>();
  private readonly mapping: PositionMapping;
  /** As numbers, because objects would take five times the memory. */
  private readonly targetPositions: BigUint64Array[] = [];
  private position: Position = BEGINNING;
  private isTargetAtEnd = false;
  private events = 0;
  private copied = 0;
  /** The comparison of the batch before. The target is read while the next batch is written. */
  private checking: Promise<void> = Promise.resolve();

  constructor(
    private readonly target: EventStore,
    private readonly writer: HistoryWriter,
    positions: Position[],
  ) {
    this.mapping = new PositionMapping(positions);
  }

  async add(page: StoredEvent[]): Promise<void> {
    const stored = this.isTargetAtEnd ? [] : await this.read(page.length);
    this.accept(page.slice(0, stored.length), stored);
    for (const { stream, revision, hash } of page.slice(0, stored.length))
      this.heads.set(stream, { revision, hash });
    const missing = page.slice(stored.length);
    this.events += page.length;
    if (missing.length === 0) return;
    this.isTargetAtEnd = true;
    this.copied += missing.length;
    await this.write(missing, continueStreams(missing, this.heads));
  }

  async finish(): Promise<CopiedHistory> {
    await this.checking;
    if (!this.isTargetAtEnd) {
      const [extra] = await this.read(1);
      if (extra) throw createDifferenceError(extra.stream);
    }
    const { events, copied, heads, position: end, targetPositions } = this;
    return { events, copied, heads, end, targetPositions, newPositions: this.mapping.finish() };
  }

  private async write(
    events: StoredEvent[],
    before: Map<string, Head | null>,
    tries = 0,
  ): Promise<void> {
    try {
      await this.writer.append(events, before);
    } catch (error) {
      if (!(error instanceof UnavailableError) || tries >= RETRIES.max) throw error;
      await wait(RETRIES.everyMs);
      await this.checking;
      await this.writeRest(events, before, tries + 1);
      return;
    }
    await this.checking;
    this.checking = this.check(events);
    this.checking.catch(() => undefined);
  }

  /** Goes on after an append that failed, with the events that it has not written. */
  private async writeRest(
    events: StoredEvent[],
    before: Map<string, Head | null>,
    tries: number,
  ): Promise<void> {
    const stored = await this.read(events.length);
    this.accept(events.slice(0, stored.length), stored);
    const heads = new Map(before);
    for (const { stream, revision, hash } of stored) heads.set(stream, { revision, hash });
    const rest = events.slice(stored.length);
    if (rest.length > 0) await this.write(rest, heads, tries);
  }

  /** Reads back what was appended. PostgreSQL shows it once no transaction runs that began before. */
  private async check(events: StoredEvent[]): Promise<void> {
    let rest = events;
    for (const deadline = performance.now() + READABLE_WITHIN_MS; ;) {
      const stored = await this.read(rest.length);
      this.accept(rest.slice(0, stored.length), stored);
      rest = rest.slice(stored.length);
      if (rest.length === 0) return;
      if (performance.now() > deadline) {
        throw new ConfigError(
          'Events that were copied cannot be read: end the open transaction on the server (or, after restoring a dump, run inkpad rebase-positions), and try again.',
        );
      }
      await wait(READABLE_EVERY_MS);
    }
  }

  private read(limit: number): Promise<StoredEvent[]> {
    return retryUntilAvailable(() => this.target.readAll(this.position, limit));
  }

  private accept(expected: StoredEvent[], stored: StoredEvent[]): void {
    for (const [i, event] of expected.entries()) {
      const copy = stored[i];
      if (copy?.id !== event.id || copy.stream !== event.stream || copy.hash !== event.hash) {
        throw createDifferenceError(event.stream);
      }
      this.mapping.pass(event.position, copy.position);
      this.position = copy.position;
    }
    const numbers = stored.flatMap(({ position }) => [position.commit, position.prepare]);
    this.targetPositions.push(BigUint64Array.from(numbers));
  }
}

/** Maps positions of the source to those of the target, while the events pass in the order of the log. */
class PositionMapping {
  private readonly open: Position[];
  private readonly mapped = new Map<string, Position | null>();
  private last: Position | null = null;

  constructor(positions: Position[]) {
    this.open = [...positions].sort((a, b) => (isAfter(a, b) ? 1 : -1));
  }

  pass(old: Position, current: Position): void {
    for (let next = this.open[0]; next && isAfter(old, next); next = this.open[0]) this.map(next);
    this.last = current;
  }

  finish(): Map<string, Position | null> {
    for (let next = this.open[0]; next; next = this.open[0]) this.map(next);
    return this.mapped;
  }

  private map(position: Position): void {
    this.mapped.set(formatPosition(position), this.last);
    this.open.shift();
  }
}

function createDifferenceError(stream: string): ConfigError {
  return new ConfigError(
    `The two histories differ at ${stream}: one has events that the other lacks, or in a different order. Nothing was switched.`,
  );
}
