import type pg from 'pg';
import { ConfigError } from '#kernel/config-error.js';
import { CLAIMS, STAGING } from './staging-tables.js';
import type { AnyReadModel } from '../read-models/read-models.js';
import { NAMED_IN_INTENTS } from './verification.js';

const BATCH_SIZE = 20_000;

/**
 * A difference between a staging table and its live table.
 * @property isMoving the live table may just be ahead of the log as it was read, or behind it where read models may lag
 */
export type Difference = {
  table: string;
  stream: string;
  problem: string;
  isMoving: boolean;
  /** The value of a claim that differs. */
  claim?: ClaimKey;
};

type ClaimKey = { account_id: number; kind: string; value: string };

export type DiffResult = {
  rowCount: number;
  differences: Difference[];
  /** Number of read models of an older projection version, which are not differences. */
  outdated: number;
};

type Pair = {
  id: number;
  live: number | null;
  rebuilt: number | null;
  live_version: number | null;
  rebuilt_version: number | null;
  account: boolean;
  hash: boolean;
  /** Names of the fields of the state that differ; null if only columns that are derived from it do. */
  fields: string[] | null;
};

const selectPairs = (table: string, condition: string) => `
  select coalesce(l.id, s.id) as id, l.revision as live, s.revision as rebuilt,
    l.projection_version as live_version, s.projection_version as rebuilt_version,
    l.account_id is distinct from s.account_id as account, l.hash is distinct from s.hash as hash,
    (select array_agg(k order by k) from jsonb_object_keys(l.state || s.state) k
     where l.state -> k is distinct from s.state -> k) as fields
  from (select * from public.${table} where ${condition}) l
  full join (select * from ${STAGING}.${table} where ${condition}) s on s.id = l.id
  where l is distinct from s
  order by 1`;

type ClaimPair = ClaimKey & { live: string | null; rebuilt: string | null };

const selectClaimPairs = (condition: string) => `
  select account_id, kind, encode(value, 'hex') as value, l.stream_id as live, s.stream_id as rebuilt
  from (select * from es.claims where ${condition}) l
  full join (select * from ${STAGING}.claims where ${condition}) s using (account_id, kind, value)
  where (l.stream_id, l.revision) is distinct from (s.stream_id, s.revision)
    and coalesce(s.stream_id, l.stream_id) not in (
      select stream_id from ${STAGING}.erased union all ${NAMED_IN_INTENTS})
  order by live, kind`;
const OF_STREAMS = 'stream_id = any ($1)';
const OF_VALUES = `(account_id, kind, value) in (
  select account_id, kind, decode(value, 'hex')
  from jsonb_to_recordset($1) as x(account_id bigint, kind text, value text))`;

const selectNext = (table: string) => `
  select count(*) as n, max(id) as last
  from (select id from ${table} where id > $1 order by id limit ${BATCH_SIZE}) ids`;
/** Selects an id up to which neither table has more than BATCH_SIZE further rows. */
const selectNextBound = (table: string) => `
  select case when l.n = ${BATCH_SIZE} and s.n = ${BATCH_SIZE} then least(l.last, s.last)
    when l.n = ${BATCH_SIZE} then l.last
    when s.n = ${BATCH_SIZE} then s.last
    else greatest(l.last, s.last) end as upto
  from (${selectNext(`public.${table}`)}) l, (${selectNext(`${STAGING}.${table}`)}) s`;

/** Compares staging tables with the live tables, which go on changing meanwhile unless the caller locks them. */
export class StagingDiff {
  constructor(
    private readonly client: pg.ClientBase,
    private readonly rowsMayLag: boolean,
  ) {}

  async compareAll(readModel: AnyReadModel): Promise<DiffResult> {
    const result: DiffResult = { rowCount: 0, differences: [], outdated: 0 };
    for (let from = -1; ;) {
      const { rows: bounds } = await this.client.query<{ upto: number | null }>(
        selectNextBound(readModel.table),
        [from],
      );
      const upto = bounds[0]?.upto ?? null;
      if (upto === null) return result;
      const { rows: counts } = await this.client.query<{ n: number }>(
        `select count(*) as n from ${STAGING}.${readModel.table} where id > $1 and id <= $2`,
        [from, upto],
      );
      result.rowCount += counts[0]?.n ?? 0;
      await this.add(result, readModel, 'id > $1 and id <= $2', [from, upto]);
      from = upto;
    }
  }

  async compareSome(readModel: AnyReadModel, ids: number[]): Promise<DiffResult> {
    const result: DiffResult = { rowCount: ids.length, differences: [], outdated: 0 };
    if (ids.length > 0) await this.add(result, readModel, 'id = any ($1)', [ids]);
    return result;
  }

  async compareAllClaims(): Promise<Difference[]> {
    return this.compareClaims('true', []);
  }

  async compareClaimsOf(streams: string[]): Promise<Difference[]> {
    return streams.length === 0 ? [] : this.compareClaims(OF_STREAMS, [streams]);
  }

  /**
   * Compares the claims that differed before once more. Leaves out those that their streams have claimed since: a busy
   * stream is always ahead.
   */
  async compareClaimsAgain(before: Difference[]): Promise<Difference[]> {
    const values = before.flatMap(({ claim }) => claim ?? []);
    return values.length === 0 ? [] : this.compareClaims(OF_VALUES, [JSON.stringify(values)]);
  }

  private async compareClaims(condition: string, values: unknown[]): Promise<Difference[]> {
    const { rows } = await this.client.query<ClaimPair>(selectClaimPairs(condition), values);
    return rows.flatMap(toClaimDifferences);
  }

  private async add(
    result: DiffResult,
    readModel: AnyReadModel,
    condition: string,
    values: unknown[],
  ): Promise<void> {
    const { table, aggregate } = readModel;
    const { rows: pairs } = await this.client.query<Pair>(selectPairs(table, condition), values);
    for (const pair of pairs) {
      if ((pair.live_version ?? 0) > aggregate.projectionVersion) {
        throw new ConfigError(
          `${table} has read models that a newer version of Inkpad wrote: rebuild with that version. Nothing was changed.`,
        );
      }
      if (pair.live_version !== null && pair.live_version < aggregate.projectionVersion)
        result.outdated++;
      const difference = this.findDifference(pair);
      if (difference)
        result.differences.push({ table, stream: `${aggregate.name}-${pair.id}`, ...difference });
    }
  }

  private findDifference(pair: Pair): Pick<Difference, 'problem' | 'isMoving'> | undefined {
    const { live, rebuilt, live_version, rebuilt_version, account, hash, fields } = pair;
    if (live === null) return { problem: 'the read model is missing', isMoving: this.rowsMayLag };
    if (rebuilt === null) return { problem: 'the read model has no stream', isMoving: true };
    if (live > rebuilt) {
      const problem = `the read model is at revision ${live}, the stream ends at ${rebuilt}`;
      return { problem, isMoving: true };
    }
    if (live < rebuilt) {
      const problem = `the read model is at revision ${live}, behind its stream, which is at ${rebuilt}`;
      return { problem, isMoving: this.rowsMayLag };
    }
    if (account) return { problem: 'the read model belongs to another account', isMoving: false };
    if (hash) {
      return {
        problem: 'the read model does not have the hash of its last event',
        isMoving: false,
      };
    }
    if (live_version !== rebuilt_version) return undefined;
    const problem = fields
      ? `the read model does not match its events (${fields.join(', ')})`
      : "the read model's columns do not match its state";
    return { problem, isMoving: false };
  }
}

function toClaimDifferences({ live, rebuilt, ...claim }: ClaimPair): Difference[] {
  const { kind } = claim;
  const createDifference = (stream: string, problem: string): Difference => ({
    table: CLAIMS.name,
    stream,
    problem,
    isMoving: true,
    claim,
  });
  if (live === rebuilt && live !== null) {
    return [createDifference(live, `its ${kind} was claimed at another revision`)];
  }
  return [
    ...(rebuilt === null ? [] : [createDifference(rebuilt, `its ${kind} is not claimed`)]),
    ...(live === null
      ? []
      : [createDifference(live, `it holds a ${kind} that its history does not contain`)]),
  ];
}
