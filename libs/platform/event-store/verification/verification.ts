import type { Pool } from 'pg';
import { setTimeout as wait } from 'node:timers/promises';
import { ConfigError } from '#platform/kernel/config-error.js';
import { DamagedHistoryError } from '#platform/kernel/errors.js';
import { toCanonicalJson } from '../port/canonical-json.js';
import { findNewerEventError } from '../port/codec.js';
import type { EventStore, StoredEvent } from '../port/event-store.js';
import { hashEvent } from '../port/hash-chain.js';
import type { PersonalKeys } from '../personal-keys/personal-keys.js';
import { isAfter } from '../port/position.js';
import { openPage, type OpenedEvent } from '../read-models/fold-stream.js';
import type { AnyReadModel } from '../read-models/read-models.js';
import {
  createRecordReplay,
  isMissing,
  isOutdated,
  parseClaims,
  renderClaimColumns,
  type RecordReplay,
  type Row,
} from './record-replay.js';
import { repairRecords, type Repair } from './repair.js';
import { applyEvent } from './stream-replay.js';

/** How often a repair is tried while others change the records, or hold locks. */
const REPAIR = { tries: 20, everyMs: 250 };

/** Some records of one read model. */
export type Slice = { table: string; ids: number[] };

/**
 * What is verified of each record.
 * @property repair whether to replace what does not match the events, and read models of an older projection version
 */
export type Scope = { rows: boolean; claims: boolean; repair: boolean };

export type Difference = { table: string; stream: string; problem: string };

/**
 * @property outdated the read models of an older projection version: the next load projects them again
 * @property unrepaired the records that others changed or locked at each try, or of which other streams hold claims
 */
export type VerificationResult = {
  streams: number;
  events: number;
  differences: Difference[];
  outdated: number;
  repaired: number;
  unrepaired: number;
};

/** @property repairs what is to be repaired of the records */
type Comparison = Omit<VerificationResult, 'repaired' | 'unrepaired'> & { repairs: Repair[] };

/**
 * Replays streams and compares the result with their rows and claims while the service runs. Reads a row first, then its
 * stream only up to the row's revision. One statement reads everything that is written together with the row.
 */
export class Verification {
  private readonly tables: Map<string, AnyReadModel>;
  private readonly derivingFunctions = new Map<string, string | null>();

  constructor(
    private readonly pool: Pool,
    private readonly eventStore: EventStore,
    private readonly keys: PersonalKeys,
    allReadModels: AnyReadModel[],
  ) {
    this.tables = new Map(allReadModels.map((readModel) => [readModel.table, readModel]));
  }

  /**
   * Verifies the records of a slice, of which some may have no read model or no stream.
   * @param retry repeats parts of the work: after all of it was repeated, what is repaired would not be a difference
   */
  async verifySlice(
    { table, ids }: Slice,
    scope: Scope,
    retry: <R>(work: () => Promise<R>) => Promise<R> = (work) => work(),
  ): Promise<VerificationResult> {
    const { repairs, ...result } = await retry(() => this.compare({ table, ids }, scope, false));
    if (!scope.repair) return { ...result, repaired: 0, unrepaired: 0 };
    let remainingIds = await retry(() => this.repair(table, repairs));
    for (let tries = 1; remainingIds.length > 0 && tries < REPAIR.tries; tries++) {
      await wait(REPAIR.everyMs);
      remainingIds = await retry(async () => {
        const again = await this.compare({ table, ids: remainingIds }, scope, true);
        return this.repair(table, again.repairs);
      });
    }
    const unrepaired = remainingIds.length;
    return { ...result, repaired: repairs.length - unrepaired, unrepaired };
  }

  private async compare(
    { table, ids }: Slice,
    scope: Scope,
    isRepeated: boolean,
  ): Promise<Comparison> {
    const readModel = this.tables.get(table);
    if (!readModel) throw new Error(`${table} is not a read model`);
    const differences: Difference[] = [];
    const repairs: Repair[] = [];
    const result = { streams: 0, events: 0, differences, outdated: 0, repairs };
    const records = await this.readRecords(readModel, ids);
    const ranges = [...records].map(([stream, { row, applyTo }]) => ({
      stream,
      to: Math.max(applyTo, row.last_revision ?? 0),
    }));
    for await (const events of this.eventStore.readStreams(ranges)) {
      result.events += events.length;
      for (const event of await openPage(this.keys, events)) {
        const { stream } = event.stored;
        const record = records.get(stream);
        const problem = record && this.apply(event, record);
        if (problem !== undefined) differences.push({ table, stream, problem });
      }
    }
    const holders = scope.claims ? await this.findHolders([...records.values()]) : undefined;
    const erasedIds: number[] = [];
    for (const [stream, record] of records) {
      const rowProblems = scope.rows ? this.findRowProblems(record) : [];
      // The person may have been erased after the row was read.
      if (rowProblems.length > 0 && record.replay.isErased && !isRepeated) {
        erasedIds.push(record.row.id);
        continue;
      }
      const claimProblems = scope.claims ? this.findClaimProblems(record, holders) : [];
      result.streams++;
      if (isOutdated(record)) result.outdated++;
      for (const problem of [...rowProblems, ...claimProblems])
        differences.push({ table, stream, problem });
      const isRowWrong = rowProblems.length > 0 || (scope.rows && isOutdated(record));
      // Nothing keeps the claims of a stream as they are but its row.
      const areClaimsWrong =
        claimProblems.length > 0 && (isRowWrong || !isMissing(record.row) || !record.last);
      if (!isRowWrong && !areClaimsWrong) continue;
      if (scope.repair && !(await this.isIntact(stream, record))) continue;
      repairs.push({ ...record, isRowWrong, areClaimsWrong });
    }
    if (erasedIds.length > 0) {
      const again = await this.compare({ table, ids: erasedIds }, scope, true);
      for (const name of ['streams', 'outdated'] as const) result[name] += again[name];
      differences.push(...again.differences);
      repairs.push(...again.repairs);
    }
    return result;
  }

  /** Tells whether nobody has deleted events of a record: what is left of it would be in its read model. */
  private async isIntact(stream: string, { row, last }: RecordReplay): Promise<boolean> {
    if (last && row.revision <= last.revision) return true;
    try {
      for await (const _ of this.eventStore.readStream(stream)) continue;
      return true;
    } catch (error) {
      if (error instanceof DamagedHistoryError) return false;
      throw error;
    }
  }

  /**
   * @returns the ids of records that remain as they are
   * @throws ConfigError for read models that only a newer version can project
   */
  private async repair(table: string, repairs: Repair[]): Promise<number[]> {
    const isNewer = ({ row, replay }: Repair) =>
      row.projection_version > replay.readModel.projectionVersion;
    if (repairs.some(isNewer)) {
      throw new ConfigError(
        `${table} has read models that a newer version of Inkpad wrote: repair them with that version.`,
      );
    }
    return repairRecords(this.pool, table, repairs);
  }

  /** Reads records to compare them with the replays of their streams. @returns them by stream */
  async readRecords(readModel: AnyReadModel, ids: number[]): Promise<Map<string, RecordReplay>> {
    const rows = await this.readRows(readModel, ids);
    return new Map(rows.map((row) => createRecordReplay(readModel, row)));
  }

  /** Applies an event up to `applyTo`, and only checks the later ones. @returns why the stream is broken */
  apply(event: OpenedEvent, record: RecordReplay): string | undefined {
    if (record.isBroken) return undefined;
    const { stored } = event;
    const { applyTo, replay, last } = record;
    const problem =
      findChainError(stored, last) ?? findNewerEventError(replay.readModel, stored)?.problem;
    if (problem !== undefined) {
      record.isBroken = true;
      return problem;
    }
    record.last = stored;
    if (stored.revision <= applyTo) applyEvent(replay, event, this.keys);
    return undefined;
  }

  /** Tells whether a record is what its stream says, and nothing is to be done. Call it after its last event. */
  isRight(record: RecordReplay, { rows, claims, repair }: Scope): boolean {
    return (
      (!rows || this.findRowProblems(record).length === 0) &&
      (!claims || this.findClaimProblems(record).length === 0) &&
      !(repair && rows && isOutdated(record))
    );
  }

  /**
   * Reads read models with everything that is written in the same transaction. Where the events are elsewhere the last
   * revisions would be of another moment.
   */
  private async readRows({ name, table }: AnyReadModel, ids: number[]): Promise<Row[]> {
    const { isInDatabase } = this.eventStore;
    const derive = await this.findDerivingFunction(table);
    const { rows } = await this.pool.query<Row>(
      `select w.id, r.account_id, coalesce(r.revision, -1) as revision, r.hash, r.projection_version, r.state,
         ${derive === null ? 'true' : `(select to_jsonb(r) || to_jsonb(d) = to_jsonb(r) from ${derive}(r.state) d)`} as has_right_columns,
         ${isInDatabase ? '(select max(e.revision) from es.events e where e.stream_id = w.stream)' : 'null::bigint'} as last_revision,
         ${renderClaimColumns('w.stream')}
       from (select id, $2 || '-' || id as stream from unnest($1::bigint[]) as id) w
       left join ${table} r on r.id = w.id
       order by w.id`,
      [ids, name],
    );
    return rows;
  }

  /** Finds the function that derives columns of a table from the state; null where they are generated. */
  private async findDerivingFunction(table: string): Promise<string | null> {
    const cached = this.derivingFunctions.get(table);
    if (cached !== undefined) return cached;
    const { rows } = await this.pool.query<{ name: string | null }>(
      `select to_regprocedure($1 || '(jsonb)')::regproc as name`,
      [`es.derive_${table}`],
    );
    const name = rows[0]?.name ?? null;
    this.derivingFunctions.set(table, name);
    return name;
  }

  private findRowProblems(record: RecordReplay): string[] {
    const { row, replay, last: head, isBroken } = record;
    if (isBroken) return [];
    if (isMissing(row)) return head ? ['the read model is missing'] : [];
    if (!head) return ['the read model has no stream'];
    if (head.revision < row.revision) {
      return [`the read model is at revision ${row.revision}, the stream ends at ${head.revision}`];
    }
    if (row.last_revision !== null && row.revision < row.last_revision)
      return ['the read model is behind its stream'];
    if (row.revision === head.revision && row.hash.toString('hex') !== head.hash)
      return ['the read model does not have the hash of its last event'];
    const fields = isOutdated(record) ? [] : findOtherFields(row.state, replay.state ?? {});
    if (fields.length > 0)
      return [`the read model does not match its events (${fields.join(', ')})`];
    if (row.account_id !== replay.state?.accountId)
      return ['the read model belongs to another account'];
    return row.has_right_columns ? [] : ["the read model's columns do not match its state"];
  }

  /** Finds the streams that hold values which others should hold. @returns them by claim */
  private async findHolders(records: RecordReplay[]): Promise<Map<string, string>> {
    const missing = records.flatMap(({ row, replay }) => {
      const actual = parseClaims(row.claims);
      return [...replay.claims.keys()].filter((claim) => !actual.has(claim));
    });
    if (missing.length === 0) return new Map();
    const { rows } = await this.pool.query<{ claim: string; stream_id: string }>(
      `select x.claim, c.stream_id from unnest($1::text[]) as x(claim)
       join es.claims c on c.account_id = split_part(x.claim, ' ', 1)::bigint
         and c.kind = split_part(x.claim, ' ', 2) and c.value = decode(split_part(x.claim, ' ', 3), 'hex')`,
      [missing],
    );
    return new Map(rows.map(({ claim, stream_id }) => [claim, stream_id]));
  }

  /** @param holders the streams that hold claims of others */
  private findClaimProblems(
    { row, replay, last, isBroken }: RecordReplay,
    holders?: Map<string, string>,
  ): string[] {
    if (isBroken || replay.isErased || row.pending) return [];
    const actual = parseClaims(row.claims);
    if (!last) return actual.size > 0 ? ['claims of a record that does not exist'] : [];
    const kindOf = (claim: string) => claim.split(' ')[1];
    const problems: string[] = [];
    for (const claim of actual.keys()) {
      if (!replay.claims.has(claim))
        problems.push(`it holds a ${kindOf(claim)} that its history does not contain`);
    }
    for (const [claim, { revision }] of replay.claims) {
      const holder = holders?.get(claim);
      if (!actual.has(claim))
        problems.push(`its ${kindOf(claim)} is ${holder ? `held by ${holder}` : 'not claimed'}`);
      else if (actual.get(claim) !== revision)
        problems.push(`its ${kindOf(claim)} was claimed at another revision`);
    }
    return problems;
  }
}

/** Lists the fields in which two states differ. */
function findOtherFields(one: object, other: object): string[] {
  if (toCanonicalJson(one) === toCanonicalJson(other)) return [];
  const render = (state: object) =>
    new Map(
      Object.entries(state).map(([name, value]: [string, unknown]) => [
        name,
        value === undefined ? undefined : toCanonicalJson(value),
      ]),
    );
  const [a, b] = [render(one), render(other)];
  return [...new Set([...a.keys(), ...b.keys()])]
    .filter((name) => a.get(name) !== b.get(name))
    .sort();
}

/** Checks that an event continues the hash chain of its stream. @returns why it does not */
function findChainError(event: StoredEvent, last: StoredEvent | undefined): string | undefined {
  const { stream, revision } = event;
  const next = last ? last.revision + 1 : 0;
  if (revision > next + 1) return `events ${next} to ${revision - 1} are missing`;
  if (revision !== next) return `event ${next} is missing`;
  if (hashEvent(stream, last ?? null, event) !== event.hash)
    return `event ${revision} breaks the hash chain`;
  if (last && !isAfter(event.position, last.position))
    return `event ${revision} comes before ${revision - 1} in the log`;
  return undefined;
}
