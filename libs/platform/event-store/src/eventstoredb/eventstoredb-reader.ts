import {
  BACKWARDS,
  END,
  FORWARDS,
  START,
  type EventStoreDBClient,
  type JSONRecordedEvent,
} from '@eventstore/db-client';
import {
  BEGINNING,
  STREAM_BATCH_SIZE,
  type EventRef,
  type Position,
  type StoredEvent,
} from '../port/event-store.js';
import type { EventStoreDbConnection } from './eventstoredb-connection.js';
import { classifyError, isSilence, toUnavailableError } from './eventstoredb-errors.js';
import { getPosition, type OwnStreams } from './eventstoredb-streams.js';
import { withStreamFilter } from './filtered-reads.js';
import { isAfter } from '../port/position.js';

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

type Destroyable = { destroy: () => unknown };

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

  async *readStream(
    stream: string,
    options: { from?: number; to?: number; direction?: 'forwards' | 'backwards' } = {},
  ): AsyncIterable<StoredEvent> {
    const backwards = options.direction === 'backwards';
    const { to } = options;
    let size = FIRST_PAGE;
    for (let from = options.from ?? (backwards ? undefined : 0); ;) {
      const maxCount =
        to === undefined || from === undefined ? size : Math.min(PAGE, Math.abs(to - from) + 1);
      const page = await this.readPage(
        (client) =>
          client.readStream(this.streams.getStreamName(stream), {
            fromRevision: from === undefined ? END : BigInt(from),
            direction: backwards ? BACKWARDS : FORWARDS,
            maxCount,
          }),
        (event) => this.streams.toStoredEvent(event),
      );
      for (const event of page) {
        if (to !== undefined && (backwards ? event.revision < to : event.revision > to)) return;
        yield event;
      }
      const last = page.at(-1);
      if (last === undefined || page.length < maxCount || last.revision === to) return;
      if (backwards && last.revision === 0) return;
      from = backwards ? last.revision - 1 : last.revision + 1;
      size = PAGE;
    }
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
        for await (const event of this.readStream(stream, range)) {
          if (revisions.has(event.revision)) events.push(event);
        }
      }
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, readNext));
    return events;
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
    const events = await this.readPage(
      (client) =>
        client.readStream(this.streams.getStreamName(stream), {
          fromRevision: BigInt(from),
          direction: FORWARDS,
          maxCount,
        }),
      (event) => this.streams.toStoredEvent(event),
    );
    const behind = until ? events.findIndex(({ position }) => isAfter(position, until)) : -1;
    if (behind >= 0) return { events: events.slice(0, behind) };
    const next = from + events.length;
    return events.length < maxCount || next > to ? { events } : { events, next };
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
            fromPosition: isAfter(from, BEGINNING) ? from : START,
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

  /** Finds the first event of a stream that is not part of the history. */
  async findFirst(streamName: string): Promise<JSONRecordedEvent | undefined> {
    const [first] = await this.readPage(
      (client) => client.readStream(streamName, { maxCount: 1 }),
      (event) => event,
    );
    return first;
  }

  /** Collects a bounded read, and repeats it once if the server falls silent. A missing stream has no events. */
  private async readPage<T>(
    read: (client: EventStoreDBClient) => AsyncIterable<{ event?: unknown }> & Destroyable,
    convert: (event: JSONRecordedEvent) => T | undefined,
  ): Promise<T[]> {
    for (let isRetry = false; ; isRetry = true) {
      let reading: (AsyncIterable<{ event?: unknown }> & Destroyable) | undefined;
      try {
        return await this.connection.read((client) => collect((reading = read(client)), convert));
      } catch (error) {
        // An abandoned read must not go on in the background.
        reading?.destroy();
        const kind = classifyError(error);
        if (kind === 'missing') return [];
        if (kind === 'other' || kind === 'conflict') throw error;
        if (isRetry || !isSilence(error)) throw toUnavailableError(error, 'read');
      }
    }
  }
}

async function collect<T>(
  reading: AsyncIterable<{ event?: unknown }>,
  convert: (event: JSONRecordedEvent) => T | undefined,
): Promise<T[]> {
  const results: T[] = [];
  for await (const resolved of reading) {
    const recorded = resolved.event as JSONRecordedEvent | undefined;
    const one = recorded && convert(recorded);
    if (one !== undefined) results.push(one);
  }
  return results;
}
