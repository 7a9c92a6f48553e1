import type pg from 'pg';
import { inTransaction } from '#database/connection.js';
import { isRolledBackForRetry } from '#database/sqlstate.js';
import { toReadModelArguments } from '../postgres/commit-arguments.js';
import {
  isMissing,
  parseClaims,
  renderClaimColumns,
  type ClaimColumns,
  type RecordReplay,
} from './record-replay.js';
import { toReadModelUpdate } from './stream-replay.js';

const BATCH_SIZE = 500;

/** Shorter than deadlocks are looked for, so that the repair gives way and no command. */
const LOCK_TIMEOUT = `set local lock_timeout = '200ms'`;

const READ_CLAIMS = `
  select stream, ${renderClaimColumns('stream')} from unnest($1::text[]) as stream`;
const DELETE_CLAIMS = `
  delete from es.claims c
  using jsonb_to_recordset($1::jsonb) as x(a bigint, k text, v text, s text)
  where c.account_id = x.a and c.kind = x.k and c.value = decode(x.v, 'hex') and c.stream_id = x.s`;
/** Takes values over from other streams, whose own histories do not contain them. */
const WRITE_CLAIMS = `
  insert into es.claims (account_id, kind, value, stream_id, revision)
  select a, k, decode(v, 'hex'), s, r
  from jsonb_to_recordset($1::jsonb) as x(a bigint, k text, v text, s text, r bigint)
  order by a, k, v
  on conflict (account_id, kind, value) do update
    set stream_id = excluded.stream_id, revision = excluded.revision`;
const DELETE_LATER_CLAIMS = `
  delete from es.claims c
  using unnest($1::text[], $2::bigint[]) as x (stream, revision)
  where c.stream_id = x.stream and c.revision > x.revision`;

/** A record of which the row, the claims or both are to be replaced by what its events say. */
export type Repair = RecordReplay & { isRowWrong: boolean; areClaimsWrong: boolean };

type Head = { revision: number; hash: string };

/**
 * Replaces read models and claims by what their events say, some hundred in a transaction: readers see each as it was
 * or as it should be. Leaves those that have changed since they were read.
 * @returns the ids of those
 */
export async function repairRecords(
  pool: pg.Pool,
  table: string,
  repairs: Repair[],
): Promise<number[]> {
  const remainingIds: number[] = [];
  for (let i = 0; i < repairs.length; i += BATCH_SIZE) {
    const batch = repairs.slice(i, i + BATCH_SIZE);
    const doneIds = await inTransaction(pool, (client) => repairBatch(client, table, batch)).catch(
      (error: unknown) => {
        if (!isRolledBackForRetry(error)) throw error;
        return new Set<number>();
      },
    );
    remainingIds.push(...batch.flatMap(({ row: { id } }) => (doneIds.has(id) ? [] : [id])));
  }
  return remainingIds;
}

async function repairBatch(
  client: pg.ClientBase,
  table: string,
  repairs: Repair[],
): Promise<Set<number>> {
  await client.query(LOCK_TIMEOUT);
  const heads = await lockRows(client, table, repairs);
  const unchanged = repairs.filter(({ row }) => isAt(heads.get(row.id), findRowHead(row)));
  await replaceRows(
    client,
    table,
    unchanged.filter(({ isRowWrong }) => isRowWrong),
  );
  const areDone = await replaceClaims(
    client,
    table,
    unchanged.filter(({ areClaimsWrong }) => areClaimsWrong),
  );
  return new Set(
    unchanged.flatMap(({ row: { id }, areClaimsWrong }) =>
      areClaimsWrong && !areDone.has(id) ? [] : [id],
    ),
  );
}

/** Deletes them first: `es.write_read_models` only moves a read model forward. */
async function replaceRows(client: pg.ClientBase, table: string, repairs: Repair[]): Promise<void> {
  if (repairs.length === 0) return;
  await client.query(`delete from ${table} where id = any ($1)`, [
    repairs.map(({ row }) => row.id),
  ]);
  const ahead = repairs.filter(({ row, last }) => row.revision > (last?.revision ?? -1));
  if (ahead.length > 0) {
    await client.query(DELETE_LATER_CLAIMS, [
      ahead.map(({ replay }) => replay.stream),
      ahead.map(({ last }) => last?.revision ?? -1),
    ]);
  }
  const updates = repairs.flatMap(({ replay }) => toReadModelUpdate(replay) ?? []);
  await client.query('select es.write_read_models($1, $2, $3)', [
    ...toReadModelArguments(updates),
    updates.map(({ stream }) => stream),
  ]);
  // The new version keeps processes from using what they have cached of the former rows.
  await client.query('select raise_account_versions($1)', [
    repairs.flatMap(({ row, replay }) => [
      ...(isMissing(row) ? [] : [row.account_id]),
      ...(replay.state ? [replay.state.accountId] : []),
    ]),
  ]);
}

/** Replaces the claims of records whose rows nobody else can change before the end of the transaction. */
async function replaceClaims(
  client: pg.ClientBase,
  table: string,
  repairs: Repair[],
): Promise<Set<number>> {
  if (repairs.length === 0) return new Set();
  const heads = await lockRows(client, table, repairs);
  const { rows } = await client.query<ClaimColumns & { stream: string }>(READ_CLAIMS, [
    repairs.map(({ replay }) => replay.stream),
  ]);
  const actualClaims = new Map(rows.map((one) => [one.stream, one]));
  const ready = repairs.filter(({ row, replay, isRowWrong }) => {
    const expected = isRowWrong ? (replay.head ?? undefined) : findRowHead(row);
    return isAt(heads.get(row.id), expected) && !actualClaims.get(replay.stream)?.pending;
  });
  const wrong: object[] = [];
  const right: object[] = [];
  for (const { replay } of ready) {
    const { stream, claims } = replay;
    for (const claim of parseClaims(actualClaims.get(stream)?.claims ?? null).keys()) {
      const [a, k, v] = claim.split(' ');
      if (!claims.has(claim)) wrong.push({ a: Number(a), k, v, s: stream });
    }
    for (const { accountId: a, kind: k, value: v, revision: r } of claims.values())
      right.push({ a, k, v, s: stream, r });
  }
  if (wrong.length > 0) await client.query(DELETE_CLAIMS, [JSON.stringify(wrong)]);
  if (right.length > 0) await client.query(WRITE_CLAIMS, [JSON.stringify(right)]);
  return new Set(ready.map(({ row }) => row.id));
}

async function lockRows(
  client: pg.ClientBase,
  table: string,
  repairs: Repair[],
): Promise<Map<number, Head>> {
  const { rows } = await client.query<{ id: number; revision: number; hash: Buffer }>(
    `select id, revision, hash from ${table} where id = any ($1) order by id for update`,
    [repairs.map(({ row }) => row.id)],
  );
  return new Map(
    rows.map(({ id, revision, hash }) => [id, { revision, hash: hash.toString('hex') }]),
  );
}

function findRowHead(row: Repair['row']): Head | undefined {
  return isMissing(row) ? undefined : { revision: row.revision, hash: row.hash.toString('hex') };
}

function isAt(head: Head | undefined, expected: Head | undefined): boolean {
  return head?.revision === expected?.revision && head?.hash === expected?.hash;
}
