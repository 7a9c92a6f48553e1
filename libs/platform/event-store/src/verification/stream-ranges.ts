import type pg from 'pg';
import { retryUntilAvailable } from '#kernel/retry-until.js';
import { BEGINNING, type EventStore, type StoredEvent } from '../port/event-store.js';
import type { AnyReadModel } from '../read-models/read-models.js';
import { STREAMS_OF_EVENTS } from './orphaned-streams.js';
import type { StreamRange } from './stream-replay.js';

const PAGE = 5_000;

const LAST_REVISIONS = `
  select n.stream_id, (select max(e.revision) from es.events e where e.stream_id = n.stream_id) as last
  from (${STREAMS_OF_EVENTS}) n`;

/** Lists the streams of read models, in pages. */
export class StreamRanges {
  private readonly names: Set<string>;

  constructor(
    private readonly client: pg.ClientBase,
    private readonly eventStore: EventStore,
    readModels: AnyReadModel[],
  ) {
    this.names = new Set(readModels.map(({ aggregate }) => aggregate.name));
  }

  /** Reads them from PostgreSQL, or where read models may lag, from the log. */
  async *read(): AsyncGenerator<StreamRange[]> {
    if (this.eventStore.readModelsMayLag) {
      yield* this.convert(this.readNewStreams());
      return;
    }
    for (let after = ''; ;) {
      const { rows } = await this.client.query<{ stream_id: string; last: number }>(
        LAST_REVISIONS,
        [after],
      );
      const last = rows.at(-1);
      if (!last) return;
      yield rows
        .filter(({ stream_id }) => this.isOurs(stream_id))
        .map(({ stream_id, last: to }) => ({ stream: stream_id, to }));
      after = last.stream_id;
    }
  }

  /** Converts the names of all new streams, in pages: each stream is read to its end. */
  async *convert(pages: AsyncIterable<string[]>): AsyncGenerator<StreamRange[]> {
    for await (const page of pages) {
      yield page
        .filter((stream) => this.isOurs(stream))
        .map((stream) => ({ stream, to: Number.MAX_SAFE_INTEGER }));
    }
  }

  private async *readNewStreams(): AsyncGenerator<string[]> {
    for (let after = BEGINNING; ;) {
      const from = after;
      const page = await retryUntilAvailable(() => this.eventStore.readAll(from, PAGE));
      const last = page.at(-1);
      if (!last) return;
      yield listNewStreams(page);
      after = last.position;
    }
  }

  private isOurs(stream: string): boolean {
    return this.names.has(stream.slice(0, stream.lastIndexOf('-')));
  }
}

/** Lists the streams that begin with one of these events. */
export function listNewStreams(events: StoredEvent[]): string[] {
  return events.flatMap(({ stream, revision }) => (revision === 0 ? [stream] : []));
}
