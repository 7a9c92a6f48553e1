import type { Pool } from 'pg';
import type { DomainEvent } from '#kernel/aggregate.js';
import { inTransaction } from '#database/connection.js';
import { toCanonicalJson } from '../port/canonical-json.js';
import { findNewerEventError, toRecorded } from '../port/codec.js';
import { toReadModelArguments } from '../postgres/commit-arguments.js';
import { type EventStore, type Head, type StoredEvent } from '../port/event-store.js';
import { hashEvent } from '../port/hash-chain.js';
import type { PersonalKeys } from '../personal-keys/personal-keys.js';
import { isAfter } from '../port/position.js';
import { toStreamName, type ReadModels, type AnyReadModel } from '../read-models/read-models.js';

/** A commit to EventStoreDB takes its claims before the stream exists, and releases claims after it has written. */
export const NAMED_IN_INTENTS = `
  select w ->> 'stream' as stream_id
  from es.intents i, json_array_elements(i.content -> 'writes') w`;

/** Looked up one by one: as a join, each slice would read the heads of all streams. */
const HEAD_OF_EACH = `left join lateral (
         select revision, hash from es.streams where stream_id = r.stream offset 0) s on true`;

/** A range of ids of one row table, both ends inclusive. */
export type IdRange = { table: string; from: number; to: number };

export type VerificationResult = {
  streams: number;
  events: number;
  /** One sentence for each difference. */
  faults: string[];
  /** Rows made by an older fold. That is not a difference: they are folded again when they are next loaded. */
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
  head_revision: number | null;
  head_hash: Buffer | null;
  last_revision: number | null;
  /** As `claimOf` writes them, with commas between them. */
  claims: string | null;
  /** A commit to the stream is in progress, so its claims are about to change. */
  pending: boolean;
};

/** How far the fold of a stream has got. */
type Progress = {
  row: Row;
  head: Head | null;
  position: StoredEvent['position'] | null;
  /** The state after the row's last event. */
  state: { accountId: number } | undefined;
  claims: Set<string>;
  /** Personal data cannot be read any more, so the values that were claimed since are not known. */
  erased: boolean;
  broken: boolean;
};

/**
 * Compares rows with the folds of their streams while the service runs. A row is read first, then its stream only up to
 * the row's revision. Whatever is written together with the row is read together with it, in one statement.
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

  /** @param repair whether to replace each row that is not the fold of its stream */
  async verifyRange({ table, from, to }: IdRange, repair: boolean): Promise<VerificationResult> {
    const readModel = this.tables.get(table);
    if (!readModel) throw new Error(`${table} is not a row table`);
    const rows = await this.readRows(readModel, from, to);
    const result: VerificationResult = {
      streams: 0,
      events: 0,
      faults: [],
      outdated: 0,
      repaired: 0,
    };
    const byStream = new Map(
      rows.map((row) => [toStreamName(readModel.aggregate, row.id), progress(row)]),
    );
    const ranges = [...byStream].map(([stream, { row }]) => ({
      stream,
      to: Math.max(row.revision, row.head_revision ?? 0),
    }));
    for await (const events of this.eventStore.readStreams(ranges)) {
      result.events += events.length;
      await this.follow(readModel, events, byStream, result.faults);
    }
    const wrongRows: Row[] = [];
    for (const [stream, progress] of byStream) {
      result.streams++;
      if (progress.row.projection_version !== readModel.aggregate.projectionVersion)
        result.outdated++;
      const faults = this.findRowFaults(readModel, stream, progress);
      result.faults.push(...faults, ...this.findClaimFaults(stream, progress));
      if (faults.length > 0) wrongRows.push(progress.row);
    }
    if (repair) for (const row of wrongRows) result.repaired += await this.repair(readModel, row);
    return result;
  }

  /** @returns 1, or 0 if the row has changed meanwhile */
  private async repair(readModel: AnyReadModel, row: Row): Promise<number> {
    const { aggregate, table } = readModel;
    const stream = toStreamName(aggregate, row.id);
    const projected = await this.readModels.project(aggregate, stream);
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
   * Includes what PostgreSQL writes in the same transaction; with EventStoreDB the heads would be of another moment.
   */
  private async readRows(
    { aggregate, table }: AnyReadModel,
    from: number,
    to: number,
  ): Promise<Row[]> {
    const hasHeads = !this.eventStore.readModelsMayLag;
    const { rows } = await this.pool.query<Row>(
      `select r.id, r.account_id, r.revision, r.hash, r.projection_version, r.state,
         ${hasHeads ? 's.revision' : 'null::bigint'} as head_revision,
         ${hasHeads ? 's.hash' : 'null::bytea'} as head_hash,
         ${hasHeads ? '(select max(e.revision) from es.events e where e.stream_id = r.stream)' : 'null::bigint'} as last_revision,
         (select string_agg(c.account_id || ' ' || c.kind || ' ' || encode(c.value, 'hex'), ',')
          from es.claims c where c.stream_id = r.stream) as claims,
         r.stream in (${NAMED_IN_INTENTS}) as pending
       from (select *, $3 || '-' || id as stream from ${table} where id between $1 and $2) r
       ${hasHeads ? HEAD_OF_EACH : ''}
       order by r.id`,
      [from, to, aggregate.name],
    );
    return rows;
  }

  private async follow(
    readModel: AnyReadModel,
    events: StoredEvent[],
    byStream: Map<string, Progress>,
    faults: string[],
  ): Promise<void> {
    const opened = await this.keys.openEvents(events);
    events.forEach((event, i) => {
      const one = byStream.get(event.stream);
      const plain = opened[i];
      if (!one || !plain || one.broken) return;
      const fault =
        findChainFault(event, one) ?? findNewerEventError(readModel.aggregate, event)?.message;
      if (fault !== undefined) {
        faults.push(fault);
        one.broken = true;
        return;
      }
      one.head = { revision: event.revision, hash: event.hash };
      one.position = event.position;
      if (event.revision > one.row.revision) return;
      const fact = toRecorded<DomainEvent>(readModel.aggregate, plain);
      if (event.data['personal'] != null && plain.data['personal'] === null) one.erased = true;
      const {
        claims = [],
        releases = [],
        releasesAll,
      } = readModel.getClaimChanges?.(fact, one.state) ?? {};
      if (releasesAll) {
        one.claims.clear();
        one.erased = false;
      }
      for (const claim of releases) one.claims.delete(this.claimOf(event, claim));
      for (const claim of claims) one.claims.add(this.claimOf(event, claim));
      one.state = readModel.aggregate.evolve(one.state, fact);
    });
  }

  private claimOf({ stream, meta }: StoredEvent, given: { kind: string; value: string }): string {
    const { kind, value } = this.keys.createClaim(meta.accountId, given.kind, given.value, stream);
    return `${meta.accountId} ${kind} ${value.toString('hex')}`;
  }

  private findRowFaults(
    { table, aggregate }: AnyReadModel,
    stream: string,
    one: Progress,
  ): string[] {
    const { row, head, state, broken } = one;
    if (broken) return [];
    if (head === null) return [`${table} ${row.id}: the row has no stream`];
    const last = Math.max(row.revision, row.head_revision ?? 0, row.last_revision ?? 0);
    if (head.revision < row.revision) {
      return [
        `${stream}: the row is at revision ${row.revision}, the stream ends at ${head.revision}`,
      ];
    }
    const faults: string[] = [];
    if (!this.eventStore.readModelsMayLag) {
      if (row.head_revision === null) faults.push(`${stream}: the stream has no head`);
      else if (row.head_revision < last || row.head_hash?.toString('hex') !== head.hash) {
        faults.push(`${stream}: the stream's head is not its last event`);
      }
      if (row.revision < last) faults.push(`${stream}: the row is behind its stream`);
    }
    const current = row.projection_version === aggregate.projectionVersion;
    if (row.revision === head.revision && row.hash.toString('hex') !== head.hash) {
      faults.push(`${stream}: the row does not have the hash of its last event`);
    } else if (current && toCanonicalJson(row.state) !== toCanonicalJson(state)) {
      faults.push(`${stream}: the row is not the fold of the stream`);
    } else if (row.account_id !== state?.accountId) {
      faults.push(`${stream}: the row belongs to another account`);
    }
    return faults;
  }

  private findClaimFaults(
    stream: string,
    { row, claims, erased, broken, head }: Progress,
  ): string[] {
    if (broken || head === null || erased || row.pending) return [];
    const actualClaims = new Set(row.claims?.split(','));
    const kindOf = (claim: string) => claim.split(' ')[1];
    const faults: string[] = [];
    for (const claim of actualClaims) {
      if (claims.has(claim)) continue;
      faults.push(`${stream}: it holds a ${kindOf(claim)} that its history does not contain`);
    }
    for (const claim of claims) {
      if (!actualClaims.has(claim)) faults.push(`${stream}: its ${kindOf(claim)} is not claimed`);
    }
    return faults;
  }
}

function progress(row: Row): Progress {
  return {
    row,
    head: null,
    position: null,
    state: undefined,
    claims: new Set(),
    erased: false,
    broken: false,
  };
}

/** What is wrong with an event as the next one of its stream. */
function findChainFault(event: StoredEvent, { head, position }: Progress): string | undefined {
  const { stream, revision } = event;
  const next = head === null ? 0 : head.revision + 1;
  if (revision !== next) return `${stream}: event ${next} is missing`;
  if (hashEvent(stream, head, event) !== event.hash) {
    return `${stream}: event ${revision} breaks the hash chain`;
  }
  if (position !== null && !isAfter(event.position, position)) {
    return `${stream}: event ${revision} comes before ${revision - 1} in the log`;
  }
  return undefined;
}
