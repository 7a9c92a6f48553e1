import {
  BACKWARDS,
  END,
  FORWARDS,
  START,
  type EventStoreDBClient,
  type JSONRecordedEvent,
} from '@eventstore/db-client';
import { DamagedHistoryError, getErrorMessage } from '#platform/kernel/errors.js';
import {
  BEGINNING,
  STREAM_BATCH_SIZE,
  type EventRef,
  type Position,
  type StoredEvent,
} from '../port/event-store.js';
import type { EventStoreDbConnection } from './eventstoredb-connection.js';
import {
  classifyError,
  isAccessDenied,
  NoResponseError,
  toUnavailableError,
} from './eventstoredb-errors.js';
import type { StreamBeginning } from './foreign-events.js';
import { getPosition, type OwnStreams } from './eventstoredb-streams.js';
import { collect, withStreamFilter } from './filtered-reads.js';
import { isAfter } from '../port/position.js';

/** Settings that may hide all events of a stream. */
export const HIDING = ['$tb', '$maxAge'];
const PAGE = 500;
/** The first page of a stream whose length is not known. Most streams have fewer events. */
const FIRST_PAGE = 64;
const CONCURRENCY = 8;
/** Fewer events of the log say little about whether most of it belongs to others. */
const TELLING_PAGE = 100;
/** How many streams `readStreams` asks for before it needs them. */
const STREAMS_AHEAD = 16;

/** @property until a position of the log (inclusive), behind which the stream is not read */
type StreamRange = { stream: string; to: number; until?: Position };

/** @property next the revision at which the next page begins; undefined after the last one */
type StreamPage = { events: StoredEvent[]; next?: number };

type Reading = AsyncIterable<{ event?: unknown }> & { destroy: () => unknown };

type ReadOptions = { from?: number; to?: number; direction?: 'forwards' | 'backwards' };

type StreamRead = {
  stream: string;
  from?: number | undefined;
  direction?: 'forwards' | 'backwards' | undefined;
  maxCount: number;
};

/** @property revisions of everything on the page, also what is not ours */
type WholePage = { events: StoredEvent[]; revisions: bigint[] };

/**
 * Reads events in bounded pages.
 * @throws UnavailableError when the server does not respond in time
 */
export class EventStoreDbReader {
  /** Whether most of the log's last page belonged to others. */
  private isShared = false;
  private canFilter = true;

  constructor(
    private readonly connection: EventStoreDbConnection,
    private readonly streams: OwnStreams,
  ) {}

  /** @throws DamagedHistoryError when events are missing at the beginning of what is read; not backwards */
  readStream(stream: string, options: ReadOptions = {}): AsyncIterable<StoredEvent> {
    return this.readRange(stream, options, true);
  }

  private async *readRange(
    stream: string,
    options: ReadOptions,
    mustBeWhole: boolean,
  ): AsyncIterable<StoredEvent> {
    const { to, direction } = options;
    const isBackwards = direction === 'backwards';
    let size = FIRST_PAGE;
    for (let from = options.from ?? (isBackwards ? undefined : 0); ;) {
      const maxCount =
        to === undefined || from === undefined ? size : Math.min(PAGE, Math.abs(to - from) + 1);
      const page = await this.readStreamPage({ stream, from, direction, maxCount });
      if (mustBeWhole && !isBackwards) await this.assertWhole(stream, from ?? 0, page);
      for (const event of page.events) {
        if (to !== undefined && (isBackwards ? event.revision < to : event.revision > to)) return;
        yield event;
      }
      const last = Number(page.revisions.at(-1) ?? 0);
      if (page.revisions.length < maxCount || last === to || (isBackwards && last === 0)) return;
      from = isBackwards ? last - 1 : last + 1;
      size = PAGE;
    }
  }

  private async readStreamPage({
    stream,
    from,
    direction,
    maxCount,
  }: StreamRead): Promise<WholePage> {
    const isBackwards = direction === 'backwards';
    const fromRevision = from === undefined ? (isBackwards ? END : START) : BigInt(from);
    let revisions: bigint[] = [];
    const events = await this.readPage(
      (client) => {
        revisions = [];
        return client.readStream(this.streams.getStreamName(stream), {
          fromRevision,
          direction: isBackwards ? BACKWARDS : FORWARDS,
          maxCount,
        });
      },
      (event) => {
        revisions.push(event.revision);
        return this.streams.toStoredEvent(event);
      },
      stream,
    );
    return { events, revisions };
  }

  /** Checks that a page begins where it should: an administrator may have deleted what comes first in a stream. */
  private async assertWhole(
    stream: string,
    from: number,
    { events: [first], revisions }: WholePage,
  ): Promise<void> {
    if (first && first.revision > from)
      throw new DamagedHistoryError('past', `${stream} lacks its event ${from}`);
    if (from === 0 && revisions.length === 0) await this.assertNoSettings(stream, HIDING, 'past');
  }

  /**
   * Checks that nobody has made settings of these names for a stream.
   * @throws DamagedHistoryError
   */
  async assertNoSettings(stream: string, names: string[], what: 'change' | 'past' = 'change') {
    const metadata = await this.readMetadata(stream);
    const name = names.find((candidate) => metadata?.[candidate] !== undefined);
    if (name !== undefined)
      throw new DamagedHistoryError(what, `the settings of ${stream} have ${name}`);
  }

  /**
   * Checks that what follows an event in its stream, if anything, is ours.
   * @throws DamagedHistoryError
   */
  async assertUntouchedAfter(stream: string, revision: number): Promise<void> {
    const from = revision + 1;
    const { events, revisions } = await this.readStreamPage({ stream, from, maxCount: 1 });
    if (revisions.length === 0 || events.length > 0) return;
    throw new DamagedHistoryError('change', `event ${revisions[0]} of ${stream} is not ours`);
  }

  /** Tells whether a stream has never had an event of anybody, even one that was deleted. */
  async isUnused(stream: string): Promise<boolean> {
    return leaveOutHidden<boolean>(async () => {
      const [{ revisions }, metadata] = await Promise.all([
        this.readStreamPage({ stream, maxCount: 1 }),
        this.readMetadata(stream),
      ]);
      return revisions.length === 0 && metadata === undefined;
    }, false);
  }

  /** Finds where a stream, by its name on the server, begins for its readers. */
  async readBeginning(streamName: string): Promise<StreamBeginning> {
    return leaveOutHidden<StreamBeginning>(
      async () => {
        const first = await this.findFirst(streamName);
        return { first: first ? Number(first.revision) : null, isDenied: false };
      },
      { first: null, isDenied: true },
    );
  }

  /** Reads the settings of a stream; undefined where nobody has made any. */
  private async readMetadata(stream: string): Promise<Record<string, unknown> | undefined> {
    const name = `$$${this.streams.getStreamName(stream)}`;
    // Who may not read them learns less.
    const last = await leaveOutHidden(() => this.findOne(name, BACKWARDS), undefined);
    return last?.data as Record<string, unknown> | undefined;
  }

  async readEvents(refs: EventRef[]): Promise<StoredEvent[]> {
    const revisionsByStream = new Map<string, Set<number>>();
    for (const { stream, revision } of refs) {
      revisionsByStream.set(stream, (revisionsByStream.get(stream) ?? new Set()).add(revision));
    }
    const events: StoredEvent[] = [];
    const streams = [...revisionsByStream];
    const readNext = async (): Promise<void> => {
      for (let next = streams.pop(); next; next = streams.pop()) {
        const [stream, revisions] = next;
        const range = { from: Math.min(...revisions), to: Math.max(...revisions) };
        for (const event of await this.readVisible(stream, range)) {
          if (revisions.has(event.revision)) events.push(event);
        }
      }
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, readNext));
    return events;
  }

  private async readVisible(stream: string, range: ReadOptions): Promise<StoredEvent[]> {
    const events: StoredEvent[] = [];
    return leaveOutHidden(async () => {
      for await (const event of this.readRange(stream, range, false)) events.push(event);
      return events;
    }, []);
  }

  /**
   * Reads several streams, each up to a revision (inclusive), in batches of whole streams where they are short. Reads the
   * first pages of the next ones ahead.
   */
  async *readStreams(ranges: StreamRange[]): AsyncIterable<StoredEvent[]> {
    const readFirstPage = (range: StreamRange) => {
      const size = range.until ? FIRST_PAGE : PAGE;
      const page = this.readForwards(range, 0, size);
      // Its failure is reported where it is awaited.
      page.catch(() => undefined);
      return page;
    };
    const ahead = ranges.slice(0, STREAMS_AHEAD).map(readFirstPage);
    let batch: StoredEvent[] = [];
    for (const [i, range] of ranges.entries()) {
      const { events, next } = (await ahead.shift()) ?? { events: [] };
      const following = ranges[i + STREAMS_AHEAD];
      if (following) ahead.push(readFirstPage(following));
      if (batch.length > 0 && batch.length + events.length > STREAM_BATCH_SIZE) {
        yield batch;
        batch = [];
      }
      batch = batch.concat(events);
      if (next === undefined) continue;
      yield batch;
      batch = [];
      for (let from: number | undefined = next; from !== undefined;) {
        const page: StreamPage = await this.readForwards(range, from, PAGE);
        if (page.events.length > 0) yield page.events;
        from = page.next;
      }
    }
    if (batch.length > 0) yield batch;
  }

  /** Reads a page of a stream, and leaves out what is behind its range. */
  private async readForwards(
    { stream, to, until }: StreamRange,
    from: number,
    size: number,
  ): Promise<StreamPage> {
    const maxCount = Math.min(size, to - from + 1);
    const read = () => this.readStreamPage({ stream, from, maxCount });
    const page = until ? await read() : await leaveOutHidden(read, { events: [], revisions: [] });
    if (until) await this.assertWhole(stream, from, page);
    const { events, revisions } = page;
    const behind = until ? events.findIndex(({ position }) => isAfter(position, until)) : -1;
    if (behind >= 0) return { events: events.slice(0, behind) };
    const next = Number(revisions.at(-1) ?? 0) + 1;
    return revisions.length < maxCount || next > to ? { events } : { events, next };
  }

  /** Reads the log. On a server with many other streams, the server leaves these out. */
  async readAll(after: Position, limit: number): Promise<StoredEvent[]> {
    const events: StoredEvent[] = [];
    let minCount = 1;
    for (let from = after; events.length < limit;) {
      // Some events belong to others, and the first one is the last of the page before.
      const maxCount = Math.min(PAGE, Math.max(minCount, 2 * (limit - events.length) + 1));
      const { page, readCount, last } = await this.readLogPage(from, maxCount);
      for (const event of page) {
        if (isAfter(event.position, from) && events.length < limit) events.push(event);
      }
      // Reads begin with the event at their position, so a page of one event is the last one.
      if (readCount < maxCount) break;
      from = last;
      // Otherwise looking for one event among many of others would take many pages.
      minCount = page.length === 0 ? 2 * maxCount : 1;
    }
    return events;
  }

  private async readLogPage(
    from: Position,
    maxCount: number,
  ): Promise<{ page: StoredEvent[]; readCount: number; last: Position }> {
    const isFiltered = this.isShared && this.canFilter;
    let readCount = 0;
    let last = from;
    try {
      const page = await this.readPage(
        (client) => {
          readCount = 0;
          const reading = isFiltered ? withStreamFilter(client, this.streams.prefixes) : client;
          return reading.readAll({
            fromPosition: this.streams.getReadStart(from),
            direction: FORWARDS,
            maxCount,
          });
        },
        (event) => {
          readCount++;
          last = getPosition(event);
          return isAfter(last, from) ? this.streams.toStoredEvent(event) : undefined;
        },
      );
      if (!isFiltered && readCount === maxCount && maxCount >= TELLING_PAGE)
        this.isShared = page.length < maxCount / 2;
      return { page, readCount, last };
    } catch (error) {
      if (!isFiltered) throw error;
      // It may have to look at more than it can in time. By pages it does not.
      this.canFilter = false;
      return this.readLogPage(from, maxCount);
    }
  }

  /** Reads the head of everything on the server, not only of our streams. */
  async readHead(): Promise<Position> {
    const [head] = await this.readPage(
      (client) => client.readAll({ fromPosition: END, direction: BACKWARDS, maxCount: 1 }),
      getPosition,
    );
    return head ?? BEGINNING;
  }

  /**
   * Finds the first event of a stream that is not part of the history.
   * @throws DamagedHistoryError when it is deleted for good
   */
  findFirst(streamName: string): Promise<JSONRecordedEvent | undefined> {
    return this.findOne(streamName, FORWARDS);
  }

  private async findOne(
    streamName: string,
    direction: typeof FORWARDS | typeof BACKWARDS,
  ): Promise<JSONRecordedEvent | undefined> {
    const fromRevision = direction === FORWARDS ? START : END;
    const [event] = await this.readPage(
      (client) => client.readStream(streamName, { fromRevision, direction, maxCount: 1 }),
      (resolved) => resolved,
      streamName,
    );
    return event;
  }

  /**
   * Collects a bounded read, and repeats it once if the server falls silent. A missing stream has no events.
   * @param stream what is read, if it is one stream
   * @throws DamagedHistoryError when that stream is deleted for good, or may not be read
   */
  private async readPage<T>(
    read: (client: EventStoreDBClient) => Reading,
    convert: (event: JSONRecordedEvent) => T | undefined,
    stream?: string,
  ): Promise<T[]> {
    for (let isRetry = false; ; isRetry = true) {
      let reading: Reading | undefined;
      try {
        return await this.connection.read((client) => collect((reading = read(client)), convert));
      } catch (error) {
        // An abandoned read must not go on in the background.
        reading?.destroy();
        const kind = classifyError(error);
        if (kind === 'missing') return [];
        if (stream !== undefined && (kind === 'deleted' || isAccessDenied(error))) {
          throw new DamagedHistoryError('past', `${stream}: ${getErrorMessage(error)}`);
        }
        if (kind === 'other' || kind === 'conflict') throw error;
        if (isRetry || !(error instanceof NoResponseError)) throw toUnavailableError(error, 'read');
      }
    }
  }
}

/** Reads, with a result instead of a stream that is deleted for good, or may not be read. */
async function leaveOutHidden<T>(read: () => Promise<T>, none: T): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof DamagedHistoryError) return none;
    throw error;
  }
}
