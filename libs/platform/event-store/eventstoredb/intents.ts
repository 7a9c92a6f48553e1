import type pg from 'pg';
import { DamagedHistoryError, getErrorMessage, UnavailableError } from '#platform/kernel/errors.js';
import { createId } from '#platform/kernel/randomness.js';
import { RETRY, retryUntil } from '#platform/kernel/retry-until.js';
import { query, inTransaction } from '#platform/database/connection.js';
import { getCapName, checkCap } from '../port/caps.js';
import {
  toClaimArgument,
  getHeads,
  prepareWrites,
  toReadModelArguments,
  type ClaimRow,
  type ReadModelUpdate,
} from '../postgres/commit-arguments.js';
import {
  ClaimTakenError,
  ConflictError,
  type Cap,
  type Claim,
  type Commit,
  type Erasure,
  type Head,
  type ReadModelWrite,
  type SideEffect,
  type Write,
} from '../port/event-store.js';
import { createEraseStatement } from '../personal-keys/erase-statement.js';
import type { PersonalKeys } from '../personal-keys/personal-keys.js';
import { toCommitError } from '../port/commit-errors.js';
import { toResponseArgument } from '../commands/stored-responses.js';

const LEASE = "interval '60 seconds'";
const COMPLETE_WITHIN_MS = 15_000;
const POLL_INTERVAL_MS = 50;
const DAMAGED_LEASE = "interval '1 day'";
/** Leaves those that the stream has released since, or claimed again. */
const CORRECT_CLAIMS = `
  update es.claims c set revision = x.n
  from jsonb_to_recordset($1::jsonb) as x(a bigint, k text, v text, s text, r bigint, n bigint)
  where c.account_id = x.a and c.kind = x.k and c.value = decode(x.v, 'hex')
    and c.stream_id = x.s and c.revision = x.r`;

/**
 * A commit of several streams, as stored until it is finished.
 * @property holder the process that may abandon it; recovery takes over both holder and lease
 * @property cap checked when it is opened, and not stored
 */
export type Intent = { id: string; holder: string; content: IntentContent; cap?: Cap | undefined };

export type IntentContent = {
  accountId: number;
  writes: (Write & { sealedRow?: SealedRow })[];
  claims: string | null;
  releases: string | null;
  /** Releases of values that another stream of the commit claims. They take effect when the intent is opened. */
  moves: string | null;
  responses: string | null;
  erasures?: Erasure[];
  sideEffects?: SideEffect[];
};

/** A read model with personal data: `state` is sealed with the person's key, in base64. */
type SealedRow = Omit<ReadModelWrite, 'state' | 'subjectId'> & { subjectId: number; state: string };

export function createIntent(id: string, commit: Commit): Intent {
  const { accountId, writes, claims = [], releases = [], cap, erasures, sideEffects } = commit;
  const isClaimed = ({ kind, value }: Claim) =>
    claims.some((claim) => claim.kind === kind && claim.value.equals(value));
  return {
    id,
    holder: id,
    cap,
    content: {
      accountId,
      writes,
      claims: toClaimArgument(commit, claims),
      releases: toClaimArgument(
        commit,
        releases.filter((release) => !isClaimed(release)),
      ),
      moves: toClaimArgument(commit, releases.filter(isClaimed)),
      responses: toResponseArgument(commit.responses),
      ...(erasures?.length && { erasures }),
      ...(sideEffects?.length && { sideEffects }),
    },
  };
}

/** Seals an intent as it is stored, without personal data in plain text. */
export async function sealIntent(keys: PersonalKeys, intent: Intent): Promise<Intent> {
  const writes = await Promise.all(
    intent.content.writes.map(async ({ row, ...write }) => {
      if (row?.subjectId === undefined) return { ...write, ...(row && { row }) };
      const { state, subjectId, ...place } = row;
      const text = JSON.stringify(state);
      const sealed = await keys.sealText(subjectId, text, getSealContext(intent.id, write));
      // The person without a key has been erased, so the commit will lose its race.
      if (!sealed) return write;
      return { ...write, sealedRow: { ...place, subjectId, state: sealed.toString('base64') } };
    }),
  );
  return { ...intent, content: { ...intent.content, writes } };
}

/** Unseals an intent. There is no read model to write of a person who was erased meanwhile. */
export async function unsealIntent(keys: PersonalKeys, intent: Intent): Promise<Intent> {
  const writes = await Promise.all(
    intent.content.writes.map(async ({ sealedRow, ...write }) => {
      if (!sealedRow) return write;
      const { subjectId, state: sealed, ...place } = sealedRow;
      const bytes = Buffer.from(sealed, 'base64');
      const text = await keys.openText(subjectId, bytes, getSealContext(intent.id, write));
      if (text === undefined) return write;
      return { ...write, row: { ...place, subjectId, state: JSON.parse(text) as object } };
    }),
  );
  return { ...intent, content: { ...intent.content, writes } };
}

function getSealContext(intentId: string, { stream }: { stream: string }): string {
  return `row of ${stream} in intent ${intentId}`;
}

/**
 * Records a sealed intent, with its claims and cap.
 * @param process the number of the process that executes it; null: no process that others would see die
 * @throws ConflictError, ClaimTakenError, KeyTakenOverError, CapReachedError; then there is no intent
 */
export async function openIntent(
  pool: pg.Pool,
  { id, holder, content, cap }: Intent,
  process: number | null = null,
): Promise<void> {
  const text = JSON.stringify(content);
  await inTransaction(pool, async (client) => {
    const { rowCount } = await client.query(
      `insert into es.intents (id, holder, content, leased_until, cap, cap_id, process)
       values ($1, $2, $3, now() + ${LEASE}, $4, $5, $6)
       on conflict do nothing`,
      [id, holder, text, cap && getCapName(cap), cap?.id, process],
    );
    // An earlier try of ours was committed, claims included.
    if (rowCount === 0) return;
    await reserveStreams(client, id, content);
    if (cap) await checkCap(client, cap);
    await moveClaims(client, id, content.moves);
    await client.query('select es.bind_intents(array[$1::uuid], array[$2])', [id, text]);
  }).catch(async (error: unknown) => {
    const commitError = toCommitError(error);
    if (!(commitError instanceof ClaimTakenError)) throw commitError;
    const kinds = await findTakenKinds(pool, content);
    throw kinds.length > 0 ? new ClaimTakenError(kinds) : new ConflictError();
  });
}

/**
 * Lists the existing streams of a commit that it must have for itself. Two commits to several existing streams must not
 * overlap: each would find the other's first write where it can no longer refuse. Nor may one overlap with an erasure:
 * it would copy personal data of the erased person to another stream.
 */
function listReservedStreams({
  writes,
  erasures,
}: Pick<IntentContent, 'writes' | 'erasures'>): string[] {
  const existing = writes.filter(({ expected }) => expected !== null).map(({ stream }) => stream);
  return existing.length < 2 && !erasures ? [] : existing;
}

/** Reserves streams in the order of their names, so that two commits cannot deadlock. */
async function reserveStreams(
  client: pg.ClientBase,
  id: string,
  content: IntentContent,
): Promise<void> {
  const existing = listReservedStreams(content);
  if (existing.length === 0) return;
  const { rowCount } = await client.query(
    `insert into es.intent_streams (stream_id, intent)
     select stream, $2 from unnest($1::text[]) as x(stream) order by stream
     on conflict do nothing`,
    [existing, id],
  );
  if (rowCount === existing.length) return;
  await assertNoneWaitsForRepair(client, existing);
  throw new ConflictError();
}

/**
 * Checks that no intent which waits for a repair has reserved one of these streams.
 * @throws DamagedHistoryError
 */
export async function assertNoneWaitsForRepair(
  client: pg.Pool | pg.ClientBase,
  streams: string[],
): Promise<void> {
  const { rows } = await client.query<{ damage: string }>(
    `select i.damage from es.intents i join es.intent_streams s on s.intent = i.id
     where s.stream_id = any ($1) and i.damage is not null limit 1`,
    [streams],
  );
  if (rows[0]) throw new DamagedHistoryError('change', rows[0].damage);
}

/**
 * Waits until no intent has reserved one of these streams, except for intents that wait for a repair.
 * @throws UnavailableError
 */
export async function waitUntilComplete(pool: pg.Pool, streams: string[]): Promise<void> {
  await retryUntil(
    { withinMs: COMPLETE_WITHIN_MS, delayMs: POLL_INTERVAL_MS },
    async () => {
      const { rowCount } = await pool.query({
        name: 'es_intents_open',
        text: `select from es.intent_streams s join es.intents i on i.id = s.intent
               where s.stream_id = any ($1) and i.damage is null`,
        values: [streams],
      });
      return rowCount === 0 || RETRY;
    },
    () => new UnavailableError('A commit has not been finished yet'),
  );
}

/** Releases values that another stream of the commit is about to claim, and records them. */
async function moveClaims(client: pg.ClientBase, id: string, moves: string | null): Promise<void> {
  if (moves === null) return;
  await client.query(
    `with freed as (
       delete from es.claims c using jsonb_to_recordset($1::jsonb) as x(a bigint, k text, v text, s text)
       where c.account_id = x.a and c.kind = x.k and c.value = decode(x.v, 'hex') and c.stream_id = x.s
       returning c.account_id, c.kind, encode(c.value, 'hex') as value, c.stream_id, c.revision
     )
     update es.intents set moved = (
       select jsonb_agg(jsonb_build_object('a', account_id, 'k', kind, 'v', value, 's', stream_id, 'r', revision))
       from freed)
     where id = $2`,
    [moves, id],
  );
}

/**
 * Finds the kinds of claims that other streams hold and keep. A claim that the stream itself has from a command that
 * this one has not seen yet is a lost race. So is one that an open intent has made or is about to release, because only
 * its end decides which stream holds it; nobody waits for one that is damaged.
 */
async function findTakenKinds(pool: pg.Pool, { claims, writes }: IntentContent): Promise<string[]> {
  const expectedRevisions = writes.map(({ stream: s, expected }) => ({
    s,
    e: expected?.revision ?? -1,
  }));
  const rows = await query<{ kind: string }>(pool, {
    text: `select distinct c.kind from es.claims c
           join jsonb_to_recordset($1::jsonb) as x(a bigint, k text, v text)
             on c.account_id = x.a and c.kind = x.k and c.value = decode(x.v, 'hex')
           where not exists (
             select from jsonb_to_recordset($2::jsonb) as w(s text, e bigint)
             where w.s = c.stream_id and w.e < c.revision
           ) and not exists (
             select from es.intents i, unnest(array[i.content ->> 'claims', i.content ->> 'releases']) as list
             where i.damage is null and list::jsonb @> jsonb_build_array(
               jsonb_build_object('a', x.a, 'k', x.k, 'v', x.v, 's', c.stream_id))
           )`,
    values: [claims, JSON.stringify(expectedRevisions)],
  });
  return rows.map(({ kind }) => kind);
}

/** Tells whether opening an intent takes more than its claims and responses. */
export function needsTransaction({ cap, content: { moves, ...content } }: Intent): boolean {
  return cap !== undefined || moves !== null || listReservedStreams(content).length > 0;
}

export function getReadModelUpdates(content: IntentContent): ReadModelUpdate[] {
  const { accountId } = content;
  return prepareWrites(content).flatMap(({ head, write: { row, stream } }) =>
    row ? [{ accountId, stream, head, row }] : [],
  );
}

/**
 * Finds the claims whose events were appended later than planned, each with the revision that it has to get.
 * @param content with the writes as they were appended
 */
export function findLateClaims({ claims, writes }: IntentContent): (ClaimRow & { n: number })[] {
  if (claims === null) return [];
  const revisions = new Map<string, number>();
  for (const { stream, expected, events } of writes)
    revisions.set(stream, (expected?.revision ?? -1) + events.length);
  return (JSON.parse(claims) as ClaimRow[]).flatMap((claim) => {
    const n = revisions.get(claim.s) ?? claim.r;
    return n === claim.r ? [] : [{ ...claim, n }];
  });
}

/**
 * Closes an intent whose events are all appended. Does nothing when another process has closed it.
 * @param content with the writes as they were appended
 */
export async function closeIntent(pool: pg.Pool, { id, content }: Intent): Promise<void> {
  const { accountId, releases } = content;
  const updates = getReadModelUpdates(content);
  const lateClaims = findLateClaims(content);
  await inTransaction(pool, async (client) => {
    const { rowCount } = await client.query('delete from es.intents where id = $1', [id]);
    if (rowCount === 0) return;
    await client.query('select es.take_claims(null, $1)', [releases]);
    if (lateClaims.length > 0) await client.query(CORRECT_CLAIMS, [JSON.stringify(lateClaims)]);
    await client.query('select es.write_read_models($1, $2, $3)', [
      ...toReadModelArguments(updates),
      updates.map(({ stream }) => stream),
    ]);
    await client.query('select es.save_responses($1, null)', [content.responses]);
    if (content.erasures) await client.query(createEraseStatement(accountId, content.erasures));
    for (const { text, values } of content.sideEffects ?? []) await client.query(text, values);
  });
}

/**
 * Abandons an intent of which this holder has appended nothing, and will not: releases its claims.
 * @returns taken: another process holds it now and may append it. gone: that process has appended and closed it, or
 *   abandoned it
 */
export async function abandonIntent(
  pool: pg.Pool,
  { id, holder, content }: Intent,
): Promise<'abandoned' | 'taken' | 'gone'> {
  return inTransaction(pool, async (client) => {
    const deleted = await client.query<{ moved: object[] | null }>(
      'delete from es.intents where id = $1 and holder = $2 returning moved',
      [id, holder],
    );
    const [abandoned] = deleted.rows;
    if (!abandoned) {
      const { rowCount } = await client.query('select from es.intents where id = $1', [id]);
      return rowCount === 0 ? 'gone' : 'taken';
    }
    await client.query(
      `delete from es.claims c
       using jsonb_to_recordset($1::jsonb) as x(a bigint, k text, v text, s text, r bigint)
       where c.account_id = x.a and c.kind = x.k and c.value = decode(x.v, 'hex')
         and c.stream_id = x.s and c.revision = x.r`,
      [content.claims ?? '[]'],
    );
    if (abandoned.moved) {
      await client.query('select es.take_claims($1, null)', [JSON.stringify(abandoned.moved)]);
    }
    await client.query('update es.stored_responses set intent = null where intent = $1', [id]);
    return 'abandoned';
  });
}

/** Takes over intents whose lease has expired, as they are stored. The caller gets a new lease on them. */
export async function takeOverIntents(
  pool: pg.Pool,
  limit: number,
  process: number | null,
): Promise<Intent[]> {
  return query<Intent>(pool, {
    name: 'intents_take_over',
    text: `update es.intents set leased_until = now() + ${LEASE}, holder = $2, process = $3
           where id in (select id from es.intents where leased_until < now()
                        order by leased_until limit $1 for update skip locked)
           returning id, holder, content`,
    values: [limit, createId(), process],
  });
}

/**
 * Records the damage for which the rest of an intent cannot be written. Its streams stay reserved, and it is tried again
 * once a day, since some damage can be repaired on the server.
 */
export async function setDamaged(
  pool: pg.Pool,
  { id }: Intent,
  damage: DamagedHistoryError,
): Promise<void> {
  await pool.query(
    `update es.intents set damage = $2, leased_until = now() + ${DAMAGED_LEASE}, process = null
     where id = $1`,
    [id, getErrorMessage(damage.cause)],
  );
}

/** Finds the intents whose rest cannot be written, as they are stored. */
export async function findDamaged(
  pool: pg.Pool,
): Promise<(Intent & { createdAt: Date; damage: string })[]> {
  return query(pool, {
    text: `select id, holder, content, created_at as "createdAt", damage from es.intents
           where damage is not null order by created_at`,
    values: [],
  });
}

export function getHeadsAfter(content: IntentContent): Head[] {
  return getHeads(prepareWrites(content));
}
