import { parseStreamName } from '#platform/kernel/aggregate.js';
import { setTimeout as wait } from 'node:timers/promises';
import type { Pool } from 'pg';
import type { EventStore, StoredEvent } from '../port/event-store.js';
import { toStreamName, type AnyReadModel } from '../read-models/read-models.js';
import { NAMED_IN_INTENTS } from './record-replay.js';
import type { Slice } from './verification.js';

const PAGE = 5_000;
const SLICE_SIZE = 500;
const TRIES = 10;
const RETRY_DELAY_MS = 500;

/**
 * Finds each stream once by jumping from name to name through the primary key. Reading all of it would take too long.
 */
const STREAMS_OF_EVENTS = `
  with recursive named (stream_id) as (
    (select stream_id from es.events where stream_id > $1 order by stream_id limit 1)
    union all
    select (select e.stream_id from es.events e where e.stream_id > n.stream_id order by e.stream_id limit 1)
    from named n where n.stream_id is not null
  ) select stream_id from named where stream_id is not null limit ${PAGE}`;
const STREAMS_OF_CLAIMS = `
  select distinct stream_id from es.claims where stream_id > $1 order by stream_id limit ${PAGE}`;
const STILL_CLAIMED = `
  select distinct stream_id from es.claims where stream_id = any ($1)
  except ${NAMED_IN_INTENTS}`;

/**
 * Selects the streams of a page that have no read model. The database looks them up itself: sending each here and back
 * would cost as much as verifying one of its events. `not exists` would read the whole table again for each page.
 */
const selectWithoutRow = (page: string, allReadModels: AnyReadModel[]): string => `
  with page as materialized (${page}), streams as materialized (
    select stream_id, left(stream_id, -1 - length(id)) as name,
      case when length(id) between 1 and 15 and translate(id, '0123456789', '') = '' then id::bigint end as id
    from (select stream_id, split_part(stream_id, '-', -1) as id from page) p
  )
  select (select stream_id from page order by stream_id desc limit 1) as last,
    coalesce((
      select json_agg(stream_id) from streams s
      where case name ${allReadModels
        .map(
          ({ name, table }) =>
            `when '${name}' then (select r.id from ${table} r where r.id = s.id) is null`,
        )
        .join(' ')} else true end), '[]') as missing`;

/** Streams without a read model. @property unknown those of no aggregate that this version knows */
export type Orphans = { slices: Slice[]; unknown: string[] };

/** Finds streams without a read model: those that have events, and those that hold claims. */
export class OrphanedStreams {
  private readonly aggregates: Map<string, AnyReadModel>;
  /** Streams of the log that had no read model when their first event was read. */
  private candidates: string[] = [];
  private readonly yielded = new Set<string>();

  constructor(
    private readonly pool: Pool,
    private readonly eventStore: EventStore,
    allReadModels: AnyReadModel[],
  ) {
    this.aggregates = new Map(allReadModels.map((readModel) => [readModel.name, readModel]));
  }

  /**
   * Finds candidates among the streams whose first event is on a page of the log. Only for a log that is not in the
   * database, of which each page has to be given.
   */
  async add(events: StoredEvent[]): Promise<void> {
    const newStreams = events.flatMap(({ stream, revision }) => (revision === 0 ? [stream] : []));
    this.candidates = this.candidates.concat(await this.findWithoutRow(newStreams));
  }

  /** Finds each stream once, as slices to verify: a stream with claims may have no event. */
  async *find(): AsyncGenerator<Orphans> {
    const { isInDatabase } = this.eventStore;
    if (isInDatabase)
      for await (const streams of this.readPages(STREAMS_OF_EVENTS)) yield this.toOrphans(streams);
    else yield this.toOrphans(await this.findStillWithoutRow(this.candidates));
    for await (const page of this.readPages(STREAMS_OF_CLAIMS)) {
      const streams = isInDatabase ? page : await this.findStillWithoutRow(page);
      yield this.toOrphans(await this.findStillClaimed(streams));
    }
  }

  private toOrphans(streams: string[]): Orphans {
    const orphans: Orphans = { slices: [], unknown: [] };
    const ids = new Map<string, number[]>();
    for (const stream of streams) {
      if (this.yielded.has(stream)) continue;
      this.yielded.add(stream);
      const table = this.findReadModel(stream)?.table;
      if (table === undefined) {
        orphans.unknown.push(stream);
        continue;
      }
      const others = ids.get(table) ?? [];
      others.push(parseStreamName(stream).id);
      ids.set(table, others);
    }
    for (const [table, all] of ids) {
      for (let i = 0; i < all.length; i += SLICE_SIZE)
        orphans.slices.push({ table, ids: all.slice(i, i + SLICE_SIZE) });
    }
    return orphans;
  }

  private async *readPages(query: string): AsyncIterable<string[]> {
    const text = selectWithoutRow(query, [...this.aggregates.values()]);
    for (let after = ''; ;) {
      const { rows } = await this.pool.query<{ last: string | null; missing: string[] }>(text, [
        after,
      ]);
      const [page] = rows;
      if (!page || page.last === null) return;
      if (page.missing.length > 0) yield page.missing;
      after = page.last;
    }
  }

  /** Waits for read models of commits that another process has just begun. */
  private async findStillWithoutRow(streams: string[]): Promise<string[]> {
    let remaining = [...new Set(streams)];
    for (let tries = 1; remaining.length > 0 && tries <= TRIES; tries++) {
      if (tries > 1) await wait(RETRY_DELAY_MS);
      remaining = await this.findWithoutRow(remaining);
    }
    return remaining;
  }

  private async findStillClaimed(streams: string[]): Promise<string[]> {
    if (streams.length === 0) return [];
    const { rows } = await this.pool.query<{ stream_id: string }>(STILL_CLAIMED, [streams]);
    return rows.map(({ stream_id }) => stream_id);
  }

  private async findWithoutRow(streams: string[]): Promise<string[]> {
    const idsByReadModel = new Map<AnyReadModel, number[]>();
    for (const stream of streams) {
      const readModel = this.findReadModel(stream);
      if (!readModel) continue;
      const ids = idsByReadModel.get(readModel);
      if (ids) ids.push(parseStreamName(stream).id);
      else idsByReadModel.set(readModel, [parseStreamName(stream).id]);
    }
    const existing = new Set<string>();
    for (const [readModel, ids] of idsByReadModel) {
      const result = await this.pool.query<{ id: number }>(
        `select id from ${readModel.table} where id = any ($1)`,
        [ids],
      );
      for (const { id } of result.rows) existing.add(toStreamName(readModel, id));
    }
    return streams.filter((stream) => !existing.has(stream));
  }

  /** Finds the read model that a stream should have; undefined if its name is that of none. */
  private findReadModel(stream: string): AnyReadModel | undefined {
    const { aggregate, id } = parseStreamName(stream);
    return Number.isSafeInteger(id) ? this.aggregates.get(aggregate) : undefined;
  }
}
