import type { Pool } from 'pg';
import { estimateBytes } from '#platform/kernel/rough-bytes.js';
import {
  STREAM_BATCH_SIZE,
  type EventRef,
  type UnpositionedEvent,
  type EventTime,
  type Position,
  type StoredEvent,
} from '../port/event-store.js';

const READ_BATCH = { first: 50, max: 500, bytes: 4 * 1024 * 1024 };
/** Batches for projections, which keep nothing of them, so they may be larger. */
const FACTS_BATCH = { first: 500, max: 5_000, bytes: READ_BATCH.bytes };

const COLUMNS = `e.tx::text as tx_text, e.pos::text as pos_text, e.stream_id, e.revision, e.event_id, e.type,
   e.schema_version, e.data, e.meta, encode(e.hash, 'hex') as hash`;
const READ_ALL = {
  name: 'es_read_all',
  text: `select ${COLUMNS} from es.events e
         where e.tx < pg_snapshot_xmin(pg_current_snapshot()) and (e.tx, e.pos) > ($1::xid8, $2::bigint)
         order by e.tx, e.pos limit $3`,
};
const READ_MOMENTS = {
  name: 'es_read_moments',
  text: `select e.tx::text as tx_text, e.pos::text as pos_text, e.stream_id, e.revision, e.event_id,
           (extract(epoch from e.recorded_at) * 1000)::bigint as recorded_ms
         from es.events e
         where e.tx < pg_snapshot_xmin(pg_current_snapshot()) and (e.tx, e.pos) > ($1::xid8, $2::bigint)
         order by e.tx, e.pos limit $3`,
};
const REACHES = {
  name: 'es_reaches',
  text: 'select pg_snapshot_xmin(pg_current_snapshot()) >= $1::xid8 as reaches',
};
/** The revision of each stream at a position of the log. */
const REVISIONS_AT = {
  name: 'es_revisions_at',
  text: `select w.stream_id, e.revision
         from unnest($1::text[]) as w (stream_id)
         cross join lateral (
           select x.revision from es.events x
           where x.stream_id = w.stream_id and (x.tx, x.pos) <= ($2::xid8, $3::bigint)
           order by x.revision desc limit 1
         ) e`,
};
const FACTS = 'e.stream_id, e.revision, e.event_id, e.type, e.schema_version, e.data, e.meta';
const READ_FACTS = {
  name: 'es_read_facts',
  text: `select ${FACTS} from es.events e
         where e.stream_id = $1 and e.revision between $2 and $3 order by e.revision limit $4`,
};
const READ_FACTS_OF_STREAMS = {
  name: 'es_read_facts_of_streams',
  text: `select ${FACTS} from unnest($1::text[], $2::bigint[]) with ordinality as w (stream_id, upto, nth)
         join es.events e on e.stream_id = w.stream_id and e.revision <= w.upto
         order by w.nth, e.revision`,
};
const READ_UNTIL = {
  name: 'es_read_until',
  text: `select ${COLUMNS} from es.events e
         where (e.tx, e.pos) <= ($1::xid8, $2::bigint) and (e.tx, e.pos) > ($3::xid8, $4::bigint)
         order by e.tx, e.pos limit $5`,
};
const READ_FORWARDS = {
  name: 'es_read_forwards',
  text: `select ${COLUMNS} from es.events e
         where e.stream_id = $1 and e.revision between $2 and $3 order by e.revision limit $4`,
};
const READ_BACKWARDS = {
  name: 'es_read_backwards',
  text: `select ${COLUMNS} from es.events e
         where e.stream_id = $1 and e.revision between $2 and $3 order by e.revision desc limit $4`,
};
/**
 * Reads dozens of short streams at once, each in its order from the index: sorting all of them takes as long again.
 * `assertOrder` checks the order.
 */
const READ_STREAMS = {
  name: 'es_read_streams',
  text: `select ${COLUMNS} from unnest($1::text[], $2::bigint[]) with ordinality as w (stream_id, upto, nth)
         cross join lateral (
           select * from es.events x
           where x.stream_id = w.stream_id and x.revision <= w.upto order by x.revision offset 0
         ) e
         order by w.nth`,
};
const READ_EVENTS = {
  name: 'es_read_events',
  text: `select ${COLUMNS} from unnest($1::text[], $2::bigint[]) as w (stream_id, revision)
         cross join lateral (
           select * from es.events x where x.stream_id = w.stream_id and x.revision = w.revision limit 1
         ) e`,
};

/** Walks back through the stream. Recent events are found soonest. */
const FIND_EVENT = {
  name: 'es_find_event',
  text: `select ${COLUMNS} from es.events e where e.event_id = $1 and e.stream_id = $2
         order by e.stream_id desc, e.revision desc limit 1`,
};

type FactRow = {
  stream_id: string;
  revision: number;
  event_id: string;
  type: string;
  schema_version: number;
  data: StoredEvent['data'];
  meta: StoredEvent['meta'];
};

type PositionRow = { tx_text: string; pos_text: string };

type EventRow = FactRow & PositionRow & { hash: string };

/** Reads events in PostgreSQL. Every read is bounded. */
export class PostgresReader {
  constructor(private readonly pool: Pool) {}

  async *readStream(
    stream: string,
    options: { from?: number; to?: number; direction?: 'forwards' | 'backwards' } = {},
  ): AsyncIterable<StoredEvent> {
    const backwards = options.direction === 'backwards';
    let low = backwards ? (options.to ?? 0) : (options.from ?? 0);
    let high = (backwards ? options.from : options.to) ?? Number.MAX_SAFE_INTEGER;
    for (let batch = READ_BATCH.first; ;) {
      const { rows } = await this.pool.query<EventRow>(backwards ? READ_BACKWARDS : READ_FORWARDS, [
        stream,
        low,
        high,
        batch,
      ]);
      for (const row of rows) yield toStoredEvent(row);
      const last = rows.at(-1);
      if (last === undefined || rows.length < batch) return;
      batch = computeBatchSize(rows, READ_BATCH);
      if (backwards) high = last.revision - 1;
      else low = last.revision + 1;
    }
  }

  /**
   * Reads several streams in groups.
   * @param readInParts reads one stream that is too long to be read with others
   */
  async *readStreams(
    ranges: StreamRange[],
    readInParts: (long: StreamRange) => AsyncIterable<StoredEvent[]>,
  ): AsyncIterable<StoredEvent[]> {
    const groups = groupRanges(ranges);
    // While the caller processes one group, the server already reads the next.
    let nextGroup = this.readGroup(groups.shift());
    for (let events = await nextGroup; events !== undefined; events = await nextGroup) {
      if ('long' in events) {
        yield* readInParts(events.long);
        nextGroup = this.readGroup(groups.shift());
      } else {
        nextGroup = this.readGroup(groups.shift());
        yield events.short;
      }
    }
  }

  async readEvents(refs: EventRef[]): Promise<StoredEvent[]> {
    const { rows } = await this.pool.query<EventRow>({
      ...READ_EVENTS,
      values: [refs.map(({ stream }) => stream), refs.map(({ revision }) => revision)],
    });
    return rows.map(toStoredEvent);
  }

  async findEvent(stream: string, id: string): Promise<StoredEvent | undefined> {
    const { rows } = await this.pool.query<EventRow>(FIND_EVENT, [id, stream]);
    return rows.map(toStoredEvent)[0];
  }

  async readAll(after: Position, limit: number): Promise<StoredEvent[]> {
    const { rows } = await this.pool.query<EventRow>(READ_ALL, [
      after.commit.toString(),
      after.prepare.toString(),
      limit,
    ]);
    return rows.map(toStoredEvent);
  }

  async readUntil(head: Position, after: Position, limit: number): Promise<StoredEvent[]> {
    const { rows } = await this.pool.query<EventRow>(READ_UNTIL, [
      ...[head, after].flatMap(({ commit, prepare }) => [commit.toString(), prepare.toString()]),
      limit,
    ]);
    return rows.map(toStoredEvent);
  }

  async readMoments(after: Position, limit: number): Promise<EventTime[]> {
    const { rows } = await this.pool.query<
      PositionRow & Pick<FactRow, 'stream_id' | 'revision' | 'event_id'> & { recorded_ms: number }
    >(READ_MOMENTS, [after.commit.toString(), after.prepare.toString(), limit]);
    return rows.map((row) => ({
      id: row.event_id,
      stream: row.stream_id,
      revision: row.revision,
      position: toPosition(row),
      recordedAt: row.recorded_ms,
    }));
  }

  /** Tells whether every transaction that began before the head was read has ended. */
  async reaches(head: Position): Promise<boolean> {
    const { rows } = await this.pool.query<{ reaches: boolean }>(REACHES, [head.commit.toString()]);
    return rows[0]?.reaches === true;
  }

  async *readFacts(streams: string[], until: Position): AsyncIterable<UnpositionedEvent[]> {
    const revisions = await this.findRevisions(streams, until);
    const ranges = [...revisions].map(([stream, to]) => ({ stream, to }));
    for (const group of groupRanges(ranges)) {
      const [first] = group;
      if (!first) continue;
      if (group.length === 1) yield* this.readLongFacts(first);
      else {
        const { rows } = await this.pool.query<FactRow>({
          ...READ_FACTS_OF_STREAMS,
          values: [group.map(({ stream }) => stream), group.map(({ to }) => to)],
        });
        yield rows.map(toFact);
      }
    }
  }

  private async *readLongFacts({ stream, to }: StreamRange): AsyncIterable<UnpositionedEvent[]> {
    const read = async (from: number, limit: number) =>
      (await this.pool.query<FactRow>(READ_FACTS, [stream, from, to, limit])).rows;
    let nextRows = read(0, FACTS_BATCH.first);
    for (let last = -1; last < to;) {
      const rows = await nextRows;
      const end = rows.at(-1);
      if (!end) return;
      last = end.revision;
      // The server reads the next batch while this one is projected. When the caller stops early, its result does
      // not matter.
      if (last < to) nextRows = read(last + 1, computeBatchSize(rows, FACTS_BATCH));
      nextRows.catch(() => undefined);
      yield rows.map(toFact);
    }
  }

  async findRevisions(
    streams: string[],
    { commit, prepare }: Position,
  ): Promise<Map<string, number>> {
    const { rows } = await this.pool.query<{ stream_id: string; revision: number }>(REVISIONS_AT, [
      streams,
      commit.toString(),
      prepare.toString(),
    ]);
    return new Map(rows.map(({ stream_id, revision }) => [stream_id, revision]));
  }

  private async readGroup(
    group: StreamRange[] | undefined,
  ): Promise<{ short: StoredEvent[] } | { long: StreamRange } | undefined> {
    const [first] = group ?? [];
    if (!group || !first) return undefined;
    if (first.to >= STREAM_BATCH_SIZE) return { long: first };
    const { rows } = await this.pool.query<EventRow>({
      ...READ_STREAMS,
      values: [group.map(({ stream }) => stream), group.map(({ to }) => to)],
    });
    return { short: assertOrder(rows).map(toStoredEvent) };
  }
}

type StreamRange = { stream: string; to: number };

/** Groups ranges into batches of at most STREAM_BATCH_SIZE events; a longer stream forms a group of its own. */
function groupRanges(ranges: StreamRange[]): StreamRange[][] {
  const groups: StreamRange[][] = [];
  let group: StreamRange[] = [];
  let events = 0;
  for (const range of ranges) {
    if (group.length > 0 && events + range.to + 1 > STREAM_BATCH_SIZE) {
      groups.push(group);
      group = [];
      events = 0;
    }
    group.push(range);
    events += range.to + 1;
  }
  if (group.length > 0) groups.push(group);
  return groups;
}

/** Computes how many events, if they are like these, take a few megabytes. */
function computeBatchSize(rows: FactRow[], { first, max, bytes }: typeof READ_BATCH): number {
  const average = rows.reduce((sum, { data }) => sum + estimateBytes(data), 0) / rows.length;
  return Math.max(first / 5, Math.min(max, Math.floor(bytes / average)));
}

/**
 * Checks the order of events.
 * @throws Error if an event comes before one that it follows
 */
function assertOrder(rows: EventRow[]): EventRow[] {
  for (const [i, { stream_id, revision }] of rows.entries()) {
    const next = rows[i + 1];
    if (next?.stream_id === stream_id && next.revision <= revision) {
      throw new Error(`${stream_id} was not read in its order`);
    }
  }
  return rows;
}

function toFact(row: FactRow): UnpositionedEvent {
  return {
    id: row.event_id,
    stream: row.stream_id,
    revision: row.revision,
    type: row.type,
    version: row.schema_version,
    data: row.data,
    meta: row.meta,
  };
}

function toStoredEvent(row: EventRow): StoredEvent {
  return { ...toFact(row), hash: row.hash, position: toPosition(row) };
}

function toPosition({ tx_text, pos_text }: PositionRow): Position {
  return { commit: BigInt(tx_text), prepare: BigInt(pos_text) };
}
