import type { Pool } from 'pg';
import { DamagedHistoryError } from '#kernel/errors.js';
import { inTransaction } from '#database/connection.js';
import { toCanonicalJson } from '../port/canonical-json.js';
import { findNewerEventError } from '../port/codec.js';
import { toReadModelArguments } from '../postgres/commit-arguments.js';
import type { EventStore, StoredEvent } from '../port/event-store.js';
import { hashEvent } from '../port/hash-chain.js';
import type { PersonalKeys } from '../personal-keys/personal-keys.js';
import { isAfter } from '../port/position.js';
import {
  applyEvent,
  createReplay,
  readStreamsForReplay,
  type ReplayedEvent,
  type StreamReplay,
} from './stream-replay.js';
import { toStreamName, type ReadModels, type AnyReadModel } from '../read-models/read-models.js';

/** A commit to EventStoreDB takes its claims before the stream exists, and releases claims after it has written. */
export const NAMED_IN_INTENTS = `
  select w ->> 'stream' as stream_id
  from es.intents i, json_array_elements(i.content -> 'writes') w`;

/** Some rows of one read model. */
export type Slice = { table: string; ids: number[] };

export type VerificationResult = {
  streams: number;
  events: number;
  /** One sentence for each difference. */
  differences: string[];
  /**
   * Number of read models of an older projection version. They are not differences: the next load projects them again.
   */
  outdated: number;
  repaired: number;
};

type Row = {
  id: number;
  account_id: number;
  revision: number;
  hash: Buffer;
  projection_version: number;
  state: object;
  /** Whether the columns that are derived from the state are what it says. */
  has_right_columns: boolean;
  last_revision: number | null;
  /** Claims of the stream, separated by commas. */
  claims: string | null;
  /** Whether a commit to the stream is in progress, so that its claims are about to change. */
  pending: boolean;
};

/** A read model and the replay of its stream. */
export type RowReplay = {
  row: Row;
  /** The state and claims after the read model's last event. */
  replay: StreamReplay;
  /** The last event of the stream, which may come after the read model's. */
  last: StoredEvent | undefined;
  isBroken: boolean;
};

/**
 * Replays streams and compares the result with their rows while the service runs. Reads a row first, then its stream
 * only up to the row's revision. One statement reads everything that is written together with the row.
 */
export class Verification {
  private readonly tables: Map<string, AnyReadModel>;

  constructor(
    private readonly pool: Pool,
    private readonly eventStore: EventStore,
    private readonly readModels: ReadModels,
    private readonly keys: PersonalKeys,
    allReadModels: AnyReadModel[],
  ) {
    this.tables = new Map(allReadModels.map((readModel) => [readModel.table, readModel]));
  }

  /**
   * Verifies the read models of a slice.
   * @param repair whether to replace each read model that does not match its events
   */
  async verifySlice(
    { table, ids }: Slice,
    repair: boolean,
    isRepeated = false,
  ): Promise<VerificationResult> {
    const readModel = this.tables.get(table);
    if (!readModel) throw new Error(`${table} is not a read model`);
    const result: VerificationResult = {
      streams: 0,
      events: 0,
      differences: [],
      outdated: 0,
      repaired: 0,
    };
    const byStream = await this.readReplays(readModel, ids);
    const ranges = [...byStream].map(([stream, { row }]) => ({
      stream,
      to: Math.max(row.revision, row.last_revision ?? 0),
    }));
    for await (const events of readStreamsForReplay(this.eventStore, this.keys, ranges)) {
      result.events += events.length;
      for (const event of events) {
        const rowReplay = byStream.get(event.stored.stream);
        const error = rowReplay && this.apply(event, rowReplay);
        if (error !== undefined) result.differences.push(error);
      }
    }
    const wrongRows: Row[] = [];
    const erasedIds: number[] = [];
    for (const [stream, rowReplay] of byStream) {
      const differences = this.findRowDifferences(stream, rowReplay);
      // The person may have been erased after the row was read.
      if (differences.length > 0 && rowReplay.replay.isErased && !isRepeated) {
        erasedIds.push(rowReplay.row.id);
        continue;
      }
      result.streams++;
      if (isOutdated(rowReplay)) result.outdated++;
      result.differences.push(...differences, ...this.findClaimDifferences(stream, rowReplay));
      if (differences.length > 0) wrongRows.push(rowReplay.row);
    }
    if (repair) for (const row of wrongRows) result.repaired += await this.repair(readModel, row);
    if (erasedIds.length > 0) {
      const repeated = await this.verifySlice({ table, ids: erasedIds }, repair, true);
      for (const name of ['streams', 'outdated', 'repaired'] as const)
        result[name] += repeated[name];
      result.differences.push(...repeated.differences);
    }
    return result;
  }

  /** Reads read models to compare them with the replays of their streams. @returns them by stream */
  async readReplays(readModel: AnyReadModel, ids: number[]): Promise<Map<string, RowReplay>> {
    const rows = await this.readRows(readModel, ids);
    return new Map(rows.map((row) => createRowReplay(readModel, row)));
  }

  /** Applies an event up to the row's revision, and only checks the later ones. @returns why the stream is broken */
  apply(event: ReplayedEvent, rowReplay: RowReplay): string | undefined {
    if (rowReplay.isBroken) return undefined;
    const { stored } = event;
    const { row, replay, last } = rowReplay;
    const error =
      findChainError(stored, last) ??
      findNewerEventError(replay.readModel.aggregate, stored)?.message;
    if (error !== undefined) {
      rowReplay.isBroken = true;
      return error;
    }
    rowReplay.last = stored;
    if (stored.revision <= row.revision) applyEvent(replay, event, this.keys);
    return undefined;
  }

  /** Tells whether a read model is what its stream says. Call it after the read model's last event. */
  isRight(stream: string, rowReplay: RowReplay): boolean {
    const differences = this.findRowDifferences(stream, rowReplay);
    return differences.length === 0 && this.findClaimDifferences(stream, rowReplay).length === 0;
  }

  /**
   * Replaces a read model.
   * @returns 1, or 0 if it has changed meanwhile
   */
  private async repair(readModel: AnyReadModel, row: Row): Promise<number> {
    const { aggregate, table } = readModel;
    const stream = toStreamName(aggregate, row.id);
    let projected;
    try {
      projected = await this.readModels.project(aggregate, stream);
    } catch (error) {
      // What is left of the record is in its read model.
      if (error instanceof DamagedHistoryError) return 0;
      throw error;
    }
    return inTransaction(this.pool, async (client) => {
      const { rowCount } = await client.query(
        `delete from ${table} where id = $1 and revision = $2 and hash = $3`,
        [row.id, row.revision, row.hash],
      );
      if (rowCount !== 1) return 0;
      await client.query('delete from es.claims where stream_id = $1 and revision > $2', [
        stream,
        projected?.head.revision ?? -1,
      ]);
      if (!projected) return 1;
      const { state, head } = projected;
      const write = { table, id: row.id, projectionVersion: aggregate.projectionVersion, state };
      await client.query('select es.write_read_models($1, $2, $3)', [
        ...toReadModelArguments([{ accountId: state.accountId, stream, head, row: write }]),
        [stream],
      ]);
      return 1;
    });
  }

  /**
   * Reads read models with everything that is written in the same transaction. Where the events are elsewhere the last
   * revisions would be of another moment.
   */
  private async readRows({ aggregate, table }: AnyReadModel, ids: number[]): Promise<Row[]> {
    const { isInDatabase } = this.eventStore;
    const derive = await this.findDerivingFunction(table);
    const { rows } = await this.pool.query<Row>(
      `select r.id, r.account_id, r.revision, r.hash, r.projection_version, r.state,
         ${derive === null ? 'true' : `(select to_jsonb(r) || to_jsonb(d) = to_jsonb(r) from ${derive}(r.state) d)`} as has_right_columns,
         ${isInDatabase ? '(select max(e.revision) from es.events e where e.stream_id = r.stream)' : 'null::bigint'} as last_revision,
         (select string_agg(c.account_id || ' ' || c.kind || ' ' || encode(c.value, 'hex'), ',')
          from es.claims c where c.stream_id = r.stream) as claims,
         r.stream in (${NAMED_IN_INTENTS}) as pending
       from (select *, $2 || '-' || id as stream from ${table} where id = any ($1)) r
       order by r.id`,
      [ids, aggregate.name],
    );
    return rows;
  }

  /** Finds the function that derives columns of a table from the state; null where they are generated. */
  private async findDerivingFunction(table: string): Promise<string | null> {
    const { rows } = await this.pool.query<{ name: string | null }>(
      `select to_regprocedure($1 || '(jsonb)')::regproc as name`,
      [`es.derive_${table}`],
    );
    return rows[0]?.name ?? null;
  }

  private findRowDifferences(stream: string, rowReplay: RowReplay): string[] {
    const { row, replay, last: head, isBroken } = rowReplay;
    if (isBroken) return [];
    const { table } = replay.readModel;
    if (!head) return [`${table} ${row.id}: the read model has no stream`];
    if (head.revision < row.revision) {
      return [
        `${stream}: the read model is at revision ${row.revision}, the stream ends at ${head.revision}`,
      ];
    }
    const differences: string[] = [];
    if (row.last_revision !== null && row.revision < row.last_revision) {
      differences.push(`${stream}: the read model is behind its stream`);
    }
    if (row.revision === head.revision && row.hash.toString('hex') !== head.hash) {
      differences.push(`${stream}: the read model does not have the hash of its last event`);
    } else if (
      !isOutdated(rowReplay) &&
      toCanonicalJson(row.state) !== toCanonicalJson(replay.state)
    ) {
      differences.push(`${stream}: the read model does not match its events`);
    } else if (row.account_id !== replay.state?.accountId) {
      differences.push(`${stream}: the read model belongs to another account`);
    } else if (!row.has_right_columns) {
      differences.push(`${stream}: the read model's columns do not match its state`);
    }
    return differences;
  }

  private findClaimDifferences(
    stream: string,
    { row, replay: { claims, isErased }, last, isBroken }: RowReplay,
  ): string[] {
    if (isBroken || !last || isErased || row.pending) return [];
    const actualClaims = new Set(row.claims?.split(','));
    const kindOf = (claim: string) => claim.split(' ')[1];
    const differences: string[] = [];
    for (const claim of actualClaims) {
      if (claims.has(claim)) continue;
      differences.push(`${stream}: it holds a ${kindOf(claim)} that its history does not contain`);
    }
    for (const claim of claims.keys()) {
      if (!actualClaims.has(claim))
        differences.push(`${stream}: its ${kindOf(claim)} is not claimed`);
    }
    return differences;
  }
}

/** Tells whether a read model is of an older projection version. */
export function isOutdated({ row, replay: { readModel } }: RowReplay): boolean {
  return row.projection_version !== readModel.aggregate.projectionVersion;
}

function createRowReplay(readModel: AnyReadModel, row: Row): [stream: string, RowReplay] {
  const stream = toStreamName(readModel.aggregate, row.id);
  const replay = createReplay(readModel, stream, row.id);
  return [stream, { row, replay, last: undefined, isBroken: false }];
}

/** Checks that an event continues the hash chain of its stream. @returns why it does not */
function findChainError(event: StoredEvent, last: StoredEvent | undefined): string | undefined {
  const { stream, revision } = event;
  const next = last ? last.revision + 1 : 0;
  if (revision > next + 1) return `${stream}: events ${next} to ${revision - 1} are missing`;
  if (revision !== next) return `${stream}: event ${next} is missing`;
  if (hashEvent(stream, last ?? null, event) !== event.hash) {
    return `${stream}: event ${revision} breaks the hash chain`;
  }
  if (last && !isAfter(event.position, last.position)) {
    return `${stream}: event ${revision} comes before ${revision - 1} in the log`;
  }
  return undefined;
}
