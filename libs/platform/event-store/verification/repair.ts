import type pg from 'pg';
import { inTransaction } from '#platform/database/connection.js';
import { isRolledBackForRetry } from '#platform/database/sqlstate.js';
import { ConflictError } from '../port/event-store.js';
import { toReadModelArguments } from '../postgres/commit-arguments.js';
import {
  isMissing,
  NAMED_IN_INTENTS,
  parseClaims,
  renderClaimColumns,
  type ClaimColumns,
  type RecordReplay,
} from './record-replay.js';
import { toReadModelUpdate } from './stream-replay.js';

const BATCH_SIZE = 500;

/** Shorter than deadlocks are looked for, so that the repair gives way and no command. */
const LOCK_TIMEOUT_MS = 200;

const READ_CLAIMS = `
  select stream, ${renderClaimColumns('stream')} from unnest($1::text[]) as stream`;
const DELETE_CLAIMS = `
  delete from es.claims c
  using jsonb_to_recordset($1::jsonb) as x(a bigint, k text, v text, s text)
  where c.account_id = x.a and c.kind = x.k and c.value = decode(x.v, 'hex') and c.stream_id = x.s`;
/** Leaves values to other streams: their own histories may contain them too. */
const WRITE_CLAIMS = `
  insert into es.claims as c (account_id, kind, value, stream_id, revision)
  select distinct on (a, k, v) a, k, decode(v, 'hex'), s, r
  from jsonb_to_recordset($1::jsonb) as x(a bigint, k text, v text, s text, r bigint)
  order by a, k, v, s
  on conflict (account_id, kind, value) do update set revision = excluded.revision
    where c.stream_id = excluded.stream_id
  returning stream_id`;
const FIND_INTENT = `
  select from (${NAMED_IN_INTENTS}) named where stream_id = any ($1::text[]) limit 1`;
const DELETE_LATER_CLAIMS = `
  delete from es.claims c
  using unnest($1::text[], $2::bigint[]) as x (stream, revision)
  where c.stream_id = x.stream and c.revision > x.revision`;

/** A record of which the row, the claims or both are to be replaced by what its events say. */
export type Repair = RecordReplay & { isRowWrong: boolean; areClaimsWrong: boolean };

type Head = { revision: number; hash: string };

/**
 * Replaces read models and claims by what their events say, some hundred in a transaction: readers see each as it was
 * or as it should be. Leaves those that have changed since they were read, that others lock, and claims of other streams.
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
    remainingIds.push(...(await repairInParts(pool, table, batch, LOCK_TIMEOUT_MS)));
  }
  return remainingIds;
}

/** Halves a batch that has to give way, so that one record delays no other. All halves wait as long as the whole. */
async function repairInParts(
  pool: pg.Pool,
  table: string,
  repairs: Repair[],
  lockTimeoutMs: number,
): Promise<number[]> {
  try {
    return await inTransaction(pool, async (client) => {
      await client.query(`set local lock_timeout = ${lockTimeoutMs}`);
      return repairBatch(client, table, repairs);
    });
  } catch (error) {
    if (!isRolledBackForRetry(error) && !(error instanceof ConflictError)) throw error;
    if (repairs.length === 1) return repairs.map(({ row }) => row.id);
    const middle = Math.ceil(repairs.length / 2);
    const remainingIds: number[] = [];
    for (const half of [repairs.slice(0, middle), repairs.slice(middle)])
      remainingIds.push(...(await repairInParts(pool, table, half, Math.ceil(lockTimeoutMs / 2))));
    return remainingIds;
  }
}

async function repairBatch(
  client: pg.ClientBase,
  table: string,
  repairs: Repair[],
): Promise<number[]> {
  const heads = await lockRows(client, table, repairs);
  const unchanged = repairs.filter(({ row }) => isAt(heads.get(row.id), findRowHead(row)));
  const wrongRows = unchanged.filter(({ isRowWrong }) => isRowWrong);
  await replaceRows(client, table, wrongRows);
  const wrongClaims = unchanged.filter(({ areClaimsWrong }) => areClaimsWrong);
  const claimedIds = await replaceClaims(client, table, wrongClaims);
  // Last, because the other batches of these accounts wait for it. The new version keeps processes from using what they
  // have cached of the former rows.
  if (wrongRows.length > 0)
    await client.query('select raise_account_versions($1)', [
      wrongRows.flatMap(({ row, replay }) => [
        ...(isMissing(row) ? [] : [row.account_id]),
        ...(replay.state ? [replay.state.accountId] : []),
      ]),
    ]);
  const doneIds = new Set(
    unchanged.flatMap(({ row: { id }, areClaimsWrong }) =>
      areClaimsWrong && !claimedIds.has(id) ? [] : [id],
    ),
  );
  return repairs.flatMap(({ row: { id } }) => (doneIds.has(id) ? [] : [id]));
}

/** Deletes them first: `es.write_read_models` only moves a read model forward. */
async function replaceRows(client: pg.ClientBase, table: string, repairs: Repair[]): Promise<void> {
  if (repairs.length === 0) return;
  await client.query(`delete from ${table} where id = any ($1)`, [
    repairs.flatMap(({ row }) => (isMissing(row) ? [] : [row.id])),
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
  const actualClaims = new Map(rows.map((row) => [row.stream, row]));
  const ready = repairs.filter(({ row, replay, isRowWrong }) => {
    const expected = isRowWrong ? (replay.head ?? undefined) : findRowHead(row);
    return isAt(heads.get(row.id), expected) && !actualClaims.get(replay.stream)?.pending;
  });
  const wrong: object[] = [];
  const right: ({ s: string } & Record<string, unknown>)[] = [];
  for (const { replay } of ready) {
    const { stream, claims } = replay;
    const actual = parseClaims(actualClaims.get(stream)?.claims ?? null);
    for (const claim of actual.keys()) {
      const [a, k, v] = claim.split(' ');
      if (!claims.has(claim)) wrong.push({ a: Number(a), k, v, s: stream });
    }
    for (const [claim, { accountId: a, kind: k, value: v, revision: r }] of claims)
      if (actual.get(claim) !== r) right.push({ a, k, v, s: stream, r });
  }
  if (wrong.length > 0) await client.query(DELETE_CLAIMS, [JSON.stringify(wrong)]);
  const missingCounts = new Map<string, number>();
  for (const { s } of right) missingCounts.set(s, (missingCounts.get(s) ?? 0) + 1);
  if (right.length > 0) {
    const written = await client.query<{ stream_id: string }>(WRITE_CLAIMS, [
      JSON.stringify(right),
    ]);
    for (const { stream_id: s } of written.rows)
      missingCounts.set(s, (missingCounts.get(s) ?? 0) - 1);
  }
  // An intent opens without the lock of a row, and may have moved what was written here.
  const { rowCount } = await client.query(FIND_INTENT, [ready.map(({ replay }) => replay.stream)]);
  if (rowCount !== 0) throw new ConflictError();
  return new Set(
    ready.flatMap(({ row, replay }) =>
      (missingCounts.get(replay.stream) ?? 0) > 0 ? [] : [row.id],
    ),
  );
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
