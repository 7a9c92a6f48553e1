import { setTimeout as wait } from 'node:timers/promises';
import type { Pool } from 'pg';
import type { DomainEvent } from '#kernel/aggregate.js';
import { BEGINNING, type EventStore } from '../port/event-store.js';
import { streamOf, type Rows, type RowTable } from '../read-models/read-models.js';
import { NAMED_IN_INTENTS, type Verified } from './verification.js';

const PAGE = 5_000;
const TRIES = 10;
const AGAIN_MS = 500;

/**
 * Jumps from name to name through the primary key, because reading all of it to find each stream once would take too
 * long.
 */
export const STREAMS_OF_EVENTS = `
  with recursive named (stream_id) as (
    (select stream_id from es.events where stream_id > $1 order by stream_id limit 1)
    union all
    select (select e.stream_id from es.events e where e.stream_id > n.stream_id order by e.stream_id limit 1)
    from named n where n.stream_id is not null
  ) select stream_id from named where stream_id is not null limit ${PAGE}`;
const STREAMS_OF_HEADS = `
  select stream_id from es.streams where stream_id > $1 order by stream_id limit ${PAGE}`;
const STREAMS_OF_CLAIMS = `
  select distinct stream_id from es.claims where stream_id > $1 order by stream_id limit ${PAGE}`;
const STILL_CLAIMED = `
  select distinct stream_id from es.claims where stream_id = any ($1)
  except ${NAMED_IN_INTENTS}`;

/**
 * Of the streams of a page those without a row, looked up where they are: sent here and back, each would cost as much as
 * verifying one of its events. `not exists` would read the whole table again for each page.
 */
const WITHOUT_ROW = (page: string, tables: AnyTable[]): string => `
  with page as materialized (${page}), streams as materialized (
    select stream_id, left(stream_id, -1 - length(id)) as name,
      case when length(id) between 1 and 15 and translate(id, '0123456789', '') = '' then id::bigint end as id
    from (select stream_id, split_part(stream_id, '-', -1) as id from page) p
  )
  select (select stream_id from page order by stream_id desc limit 1) as last,
    coalesce((
      select json_agg(stream_id) from streams s
      where case name ${tables
        .map(
          ({ aggregate, table }) =>
            `when '${aggregate.name}' then (select r.id from ${table} r where r.id = s.id) is null`,
        )
        .join(' ')} else true end), '[]') as missing`;

type AnyTable = RowTable<{ accountId: number }, DomainEvent>;

/** Streams without a row, and heads and claims of streams that do not exist. */
export class StrayStreams {
  private readonly aggregates: Map<string, AnyTable>;

  constructor(
    private readonly pool: Pool,
    private readonly store: EventStore,
    private readonly rows: Rows,
    tables: AnyTable[],
  ) {
    this.aggregates = new Map(tables.map((rows) => [rows.aggregate.name, rows]));
  }

  /** @param repair whether to write the missing rows */
  async find(repair: boolean): Promise<Pick<Verified, 'faults' | 'repaired'>> {
    // A stream is named by its events and by its head.
    const faults = new Set<string>();
    let repaired = 0;
    for await (const { streams, whose } of this.streamsWithoutRow()) {
      for (const stream of whose === 'claims' ? await this.stillClaimed(streams) : streams) {
        const rows = this.tableOf(stream);
        if (rows === undefined || !Number.isSafeInteger(idIn(stream)))
          faults.add(`${stream}: no aggregate with that name`);
        else if (whose === 'claims')
          faults.add(`${stream}: claims of a record that does not exist`);
        else {
          faults.add(`${stream}: the row is missing`);
          if (repair && (await this.rows.catchUp(rows, idIn(stream)))) repaired++;
        }
      }
    }
    return { faults: [...faults], repaired };
  }

  /** In pages; a stream that is named in several places comes more than once. */
  private async *streamsWithoutRow(): AsyncIterable<{
    streams: string[];
    whose: 'history' | 'claims';
  }> {
    const { rowsMayLag } = this.store;
    if (rowsMayLag) {
      for (let after = BEGINNING; ;) {
        const page = await this.store.readAll(after, PAGE);
        const last = page.at(-1);
        if (!last) break;
        const begun = page.filter(({ revision }) => revision === 0);
        yield {
          streams: await this.stillWithoutRow(begun.map(({ stream }) => stream)),
          whose: 'history',
        };
        after = last.position;
      }
    } else {
      for (const query of [STREAMS_OF_EVENTS, STREAMS_OF_HEADS]) {
        for await (const streams of this.pages(query)) yield { streams, whose: 'history' };
      }
    }
    for await (const streams of this.pages(STREAMS_OF_CLAIMS)) {
      yield {
        streams: rowsMayLag ? await this.stillWithoutRow(streams) : streams,
        whose: 'claims',
      };
    }
  }

  private async *pages(query: string): AsyncIterable<string[]> {
    const text = WITHOUT_ROW(query, [...this.aggregates.values()]);
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

  /** Waits for rows of commits that have just begun in another process. */
  private async stillWithoutRow(streams: string[]): Promise<string[]> {
    let left = [...new Set(streams)];
    for (let tries = 1; left.length > 0 && tries <= TRIES; tries++) {
      if (tries > 1) await wait(AGAIN_MS);
      left = await this.notFound(left);
    }
    return left;
  }

  private async stillClaimed(streams: string[]): Promise<string[]> {
    if (streams.length === 0) return [];
    const { rows } = await this.pool.query<{ stream_id: string }>(STILL_CLAIMED, [streams]);
    return rows.map(({ stream_id }) => stream_id);
  }

  private async notFound(streams: string[]): Promise<string[]> {
    const named = new Map<AnyTable, number[]>();
    for (const stream of streams) {
      const rows = this.tableOf(stream);
      if (!rows) continue;
      const ids = named.get(rows);
      if (ids) ids.push(idIn(stream));
      else named.set(rows, [idIn(stream)]);
    }
    const found = new Set<string>();
    for (const [{ table, aggregate }, ids] of named) {
      const known = await this.pool.query<{ id: number }>(
        `select id from ${table} where id = any ($1)`,
        [ids],
      );
      for (const { id } of known.rows) found.add(streamOf(aggregate, id));
    }
    return streams.filter((stream) => !found.has(stream));
  }

  private tableOf(stream: string): AnyTable | undefined {
    return this.aggregates.get(stream.slice(0, stream.lastIndexOf('-')));
  }
}

function idIn(stream: string): number {
  return Number(stream.slice(stream.lastIndexOf('-') + 1));
}
