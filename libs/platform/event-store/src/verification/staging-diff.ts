import type pg from 'pg';
import { ConfigError } from '#kernel/config-error.js';
import { CLAIMS, SHADOW } from './staging-tables.js';
import type { AnyTable } from './stream-progress.js';
import { NAMED_IN_INTENTS } from './verification.js';

const ROWS_AT_ONCE = 20_000;

/** @property moving the live table may just be ahead of what was read of the log, or behind it where rows may lag */
export type Difference = {
  table: string;
  stream: string;
  what: string;
  moving: boolean;
  /** Of the claims: the value that differs. */
  claim?: ClaimKey;
};

type ClaimKey = { account_id: number; kind: string; value: string };

export type Compared = {
  rows: number;
  differences: Difference[];
  /** Rows made by an older fold, which is no difference. */
  older: number;
};

type Pair = {
  id: number;
  live: number | null;
  rebuilt: number | null;
  live_fold: number | null;
  rebuilt_fold: number | null;
  account: boolean;
  hash: boolean;
  /** Names of what differs in the state. */
  fields: string[] | null;
};

const PAIRS = (table: string, condition: string) => `
  select coalesce(l.id, s.id) as id, l.revision as live, s.revision as rebuilt,
    l.projection_version as live_fold, s.projection_version as rebuilt_fold,
    l.account_id is distinct from s.account_id as account, l.hash is distinct from s.hash as hash,
    (select array_agg(k order by k) from jsonb_object_keys(l.state || s.state) k
     where l.state -> k is distinct from s.state -> k) as fields
  from (select * from public.${table} where ${condition}) l
  full join (select * from ${SHADOW}.${table} where ${condition}) s on s.id = l.id
  where l.id is null or s.id is null
    or (l.account_id, l.revision, l.hash, l.projection_version, l.state)
      is distinct from (s.account_id, s.revision, s.hash, s.projection_version, s.state)
  order by 1`;

type ClaimPair = ClaimKey & { live: string | null; rebuilt: string | null };

const CLAIM_PAIRS = (condition: string) => `
  select account_id, kind, encode(value, 'hex') as value, l.stream_id as live, s.stream_id as rebuilt
  from (select * from es.claims where ${condition}) l
  full join (select * from ${SHADOW}.claims where ${condition}) s using (account_id, kind, value)
  where (l.stream_id, l.revision) is distinct from (s.stream_id, s.revision)
    and coalesce(s.stream_id, l.stream_id) not in (
      select stream_id from ${SHADOW}.erased union all ${NAMED_IN_INTENTS})
  order by live, kind`;
const OF_STREAMS = 'stream_id = any ($1)';
const OF_VALUES = `(account_id, kind, value) in (
  select account_id, kind, decode(value, 'hex')
  from jsonb_to_recordset($1) as x(account_id bigint, kind text, value text))`;

const next = (table: string) => `
  select count(*) as n, max(id) as last
  from (select id from ${table} where id > $1 order by id limit ${ROWS_AT_ONCE}) ids`;
/** An id up to which neither table has more than ROWS_AT_ONCE further rows. */
const NEXT_BOUND = (table: string) => `
  select case when l.n = ${ROWS_AT_ONCE} and s.n = ${ROWS_AT_ONCE} then least(l.last, s.last)
    when l.n = ${ROWS_AT_ONCE} then l.last
    when s.n = ${ROWS_AT_ONCE} then s.last
    else greatest(l.last, s.last) end as upto
  from (${next(`public.${table}`)}) l, (${next(`${SHADOW}.${table}`)}) s`;

/** Compares shadows with the live tables, which go on changing meanwhile unless the caller holds them still. */
export class ShadowComparison {
  constructor(
    private readonly client: pg.ClientBase,
    private readonly rowsMayLag: boolean,
  ) {}

  async all(rows: AnyTable): Promise<Compared> {
    const compared: Compared = { rows: 0, differences: [], older: 0 };
    for (let from = -1; ;) {
      const { rows: bounds } = await this.client.query<{ upto: number | null }>(
        NEXT_BOUND(rows.table),
        [from],
      );
      const upto = bounds[0]?.upto ?? null;
      if (upto === null) return compared;
      const { rows: counted } = await this.client.query<{ n: number }>(
        `select count(*) as n from ${SHADOW}.${rows.table} where id > $1 and id <= $2`,
        [from, upto],
      );
      compared.rows += counted[0]?.n ?? 0;
      await this.add(compared, rows, 'id > $1 and id <= $2', [from, upto]);
      from = upto;
    }
  }

  async some(rows: AnyTable, ids: number[]): Promise<Compared> {
    const compared: Compared = { rows: ids.length, differences: [], older: 0 };
    if (ids.length > 0) await this.add(compared, rows, 'id = any ($1)', [ids]);
    return compared;
  }

  async allClaims(): Promise<Difference[]> {
    return this.claims('true', []);
  }

  async claimsOf(streams: string[]): Promise<Difference[]> {
    return streams.length === 0 ? [] : this.claims(OF_STREAMS, [streams]);
  }

  /** The values that differed before, and not what their streams have claimed since: a busy one always is ahead. */
  async claimsAgain(before: Difference[]): Promise<Difference[]> {
    const values = before.flatMap(({ claim }) => claim ?? []);
    return values.length === 0 ? [] : this.claims(OF_VALUES, [JSON.stringify(values)]);
  }

  private async claims(condition: string, values: unknown[]): Promise<Difference[]> {
    const { rows } = await this.client.query<ClaimPair>(CLAIM_PAIRS(condition), values);
    return rows.flatMap(claimDifferences);
  }

  private async add(
    compared: Compared,
    rows: AnyTable,
    condition: string,
    values: unknown[],
  ): Promise<void> {
    const { table, aggregate } = rows;
    const { rows: pairs } = await this.client.query<Pair>(PAIRS(table, condition), values);
    for (const pair of pairs) {
      if ((pair.live_fold ?? 0) > aggregate.foldVersion) {
        throw new ConfigError(
          `${table} has rows that a newer version of Inkpad wrote: rebuild with that version. Nothing was changed.`,
        );
      }
      if (pair.live_fold !== null && pair.live_fold < aggregate.foldVersion) compared.older++;
      const what = this.differenceIn(pair);
      if (what)
        compared.differences.push({ table, stream: `${aggregate.name}-${pair.id}`, ...what });
    }
  }

  private differenceIn(pair: Pair): Pick<Difference, 'what' | 'moving'> | undefined {
    const { live, rebuilt, live_fold, rebuilt_fold, account, hash, fields } = pair;
    if (live === null) return { what: 'the row is missing', moving: this.rowsMayLag };
    if (rebuilt === null) return { what: 'the row has no stream', moving: true };
    if (live > rebuilt) {
      const what = `the row is at revision ${live}, the stream ends at ${rebuilt}`;
      return { what, moving: true };
    }
    if (live < rebuilt) {
      const what = `the row is at revision ${live}, behind its stream, which is at ${rebuilt}`;
      return { what, moving: this.rowsMayLag };
    }
    if (account) return { what: 'the row belongs to another account', moving: false };
    if (hash) {
      return { what: 'the row does not have the hash of its last event', moving: false };
    }
    if (live_fold !== rebuilt_fold || !fields) return undefined;
    return { what: `the row is not the fold of the stream (${fields.join(', ')})`, moving: false };
  }
}

function claimDifferences({ live, rebuilt, ...claim }: ClaimPair): Difference[] {
  const { kind } = claim;
  const held = (stream: string, what: string): Difference => ({
    table: CLAIMS.name,
    stream,
    what,
    moving: true,
    claim,
  });
  if (live === rebuilt && live !== null) {
    return [held(live, `its ${kind} was claimed at another revision`)];
  }
  return [
    ...(rebuilt === null ? [] : [held(rebuilt, `its ${kind} is not claimed`)]),
    ...(live === null ? [] : [held(live, `it holds a ${kind} that its history does not contain`)]),
  ];
}
