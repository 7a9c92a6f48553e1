import { parseStreamName } from '#kernel/aggregate.js';
import { setTimeout as wait } from 'node:timers/promises';
import type { Pool } from 'pg';
import type { EventStore, StoredEvent } from '../port/event-store.js';
import { toStreamName, type ReadModels, type AnyReadModel } from '../read-models/read-models.js';
import { NAMED_IN_INTENTS, type VerificationResult } from './verification.js';

const PAGE = 5_000;
const TRIES = 10;
const RETRY_DELAY_MS = 500;

/**
 * Finds each stream once by jumping from name to name through the primary key. Reading all of it would take too long.
 */
export const STREAMS_OF_EVENTS = `
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
          ({ aggregate, table }) =>
            `when '${aggregate.name}' then (select r.id from ${table} r where r.id = s.id) is null`,
        )
        .join(' ')} else true end), '[]') as missing`;

/** Finds streams without a read model, and claims of streams that do not exist. */
export class OrphanedStreams {
  private readonly aggregates: Map<string, AnyReadModel>;
  private readonly differences = new Set<string>();
  private repaired = 0;

  constructor(
    private readonly pool: Pool,
    private readonly eventStore: EventStore,
    private readonly readModels: ReadModels,
    allReadModels: AnyReadModel[],
  ) {
    this.aggregates = new Map(
      allReadModels.map((readModel) => [readModel.aggregate.name, readModel]),
    );
  }

  /**
   * Finds those whose first event is on a page of the log. Only for a log that is not in the database, of which each page
   * has to be given.
   * @param repair whether to write the missing read models
   */
  async add(events: StoredEvent[], repair: boolean): Promise<void> {
    const newStreams = events.flatMap(({ stream, revision }) => (revision === 0 ? [stream] : []));
    await this.reportStreams(await this.findStillWithoutRow(newStreams), repair);
  }

  /**
   * Finds those that the database names, and returns all that were found.
   * @param repair whether to write the missing read models
   */
  async find(repair: boolean): Promise<Pick<VerificationResult, 'differences' | 'repaired'>> {
    const { isInDatabase } = this.eventStore;
    if (isInDatabase) {
      for await (const streams of this.readPages(STREAMS_OF_EVENTS))
        await this.reportStreams(streams, repair);
    }
    for await (const page of this.readPages(STREAMS_OF_CLAIMS)) {
      const streams = isInDatabase ? page : await this.findStillWithoutRow(page);
      for (const stream of await this.findStillClaimed(streams)) {
        this.differences.add(
          this.findReadModel(stream)
            ? `${stream}: claims of a record that does not exist`
            : `${stream}: no aggregate with that name`,
        );
      }
    }
    return { differences: [...this.differences], repaired: this.repaired };
  }

  private async reportStreams(streams: string[], repair: boolean): Promise<void> {
    for (const stream of streams) {
      const readModel = this.findReadModel(stream);
      if (!readModel) {
        this.differences.add(`${stream}: no aggregate with that name`);
        continue;
      }
      this.differences.add(`${stream}: the read model is missing`);
      if (repair && (await this.readModels.catchUp(readModel, parseStreamName(stream).id)))
        this.repaired++;
    }
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
    for (const [{ table, aggregate }, ids] of idsByReadModel) {
      const result = await this.pool.query<{ id: number }>(
        `select id from ${table} where id = any ($1)`,
        [ids],
      );
      for (const { id } of result.rows) existing.add(toStreamName(aggregate, id));
    }
    return streams.filter((stream) => !existing.has(stream));
  }

  /** Finds the read model that a stream should have; undefined if its name is that of none. */
  private findReadModel(stream: string): AnyReadModel | undefined {
    const { aggregate, id } = parseStreamName(stream);
    return Number.isSafeInteger(id) ? this.aggregates.get(aggregate) : undefined;
  }
}
