import { setTimeout as wait } from 'node:timers/promises';
import type { Pool } from 'pg';
import { ConfigError } from '#platform/kernel/config-error.js';
import { type PlatformConfig } from '#platform/kernel/platform-config.js';
import {
  getKeyId,
  Keyring,
  createMasterKey,
  PREFIX_BYTES,
  getKeyPrefix,
} from '#platform/kernel/keyring.js';
import { RETRY, retryUntil } from '#platform/kernel/retry-until.js';
import { findSealingKeyRow, type SealedColumn } from './master-keys.js';

const BATCH_SIZE = 500;
/** Longer than processes take to notice which key seals: each poll of their links reads it. */
const NOTICE_MS = 5_000;
const COMMIT_TIMEOUT_MS = 120_000;
const POLL_MS = 500;

type Rotation = {
  pool: Pool;
  config: PlatformConfig;
  columns: SealedColumn[];
  print: (line: string) => void;
};
type Step = Rotation & { ring: Keyring; prefix: Buffer };

/** @property unreadable number of values that neither key opens; they stay unchanged */
export type RotationResult = { key: string; sealed: number; unreadable: number };

/**
 * Reseals with MASTER_KEY everything that MASTER_KEY_PREVIOUS sealed, while the service runs. May be interrupted and
 * run again at any time: the key id at the beginning of each value shows what is done.
 * @throws ConfigError
 */
export async function rotateMasterKey(rotation: Rotation): Promise<RotationResult> {
  const { pool, config, print } = rotation;
  if (config.masterKeyPrevious === null) {
    throw new ConfigError(
      'Set MASTER_KEY to the new key (openssl rand -base64 32) and MASTER_KEY_PREVIOUS to the former one in every process, restart them, then run this again.',
    );
  }
  const current = createMasterKey(config.masterKey);
  const previous = createMasterKey(config.masterKeyPrevious);
  const key = getKeyId(current.fingerprint);
  await assertProcessesHaveKey(pool, key);
  await assertNoneWaitsForRepair(pool);
  await beginRotation(pool, current.fingerprint, previous.fingerprint);
  print(`sealing with key ${key} instead of ${getKeyId(previous.fingerprint)}`);
  await wait(NOTICE_MS);
  const ring = new Keyring([current, previous], current);
  const step = { ...rotation, ring, prefix: getKeyPrefix(current.fingerprint) };
  const before = await resealAll(step);
  await waitForCommits(pool);
  // From here on the database refuses values of the previous key; anything still in progress until then is found now.
  await pool.query('update master_key set previous = null where fingerprint = $1', [
    current.fingerprint,
  ]);
  await waitForCommits(pool);
  const { sealed, unreadable } = await resealAll(step);
  return { key, sealed: before.sealed + sealed, unreadable };
}

/**
 * Checks that every connected process has the new key.
 * @throws ConfigError
 */
async function assertProcessesHaveKey(pool: Pool, key: string): Promise<void> {
  const { rows } = await pool.query<{ name: string }>(
    // A process has several connections, of which the name says what they are for.
    `select distinct regexp_replace(application_name, ' (link|reports) key ', ' key ') as name from pg_stat_activity
     where datname = current_database() and application_name ~ '^inkpad (api|dispatcher|command)'
       and application_name not like '%' || $1 || '%'
     order by name`,
    [key],
  );
  if (rows.length === 0) return;
  throw new ConfigError(
    `These processes do not have the new key ${key} yet: ${rows.map(({ name }) => name).join(', ')}. Restart them with MASTER_KEY and MASTER_KEY_PREVIOUS, then run this again.`,
  );
}

/**
 * Checks that no commit to EventStoreDB waits for a repair. Nobody else can reseal what it holds.
 * @throws ConfigError
 */
async function assertNoneWaitsForRepair(pool: Pool): Promise<void> {
  const { rows } = await pool.query<{ damage: string; createdAt: Date }>(
    `select damage, created_at as "createdAt" from es.intents where damage is not null
     order by created_at limit 1`,
  );
  const [commit] = rows;
  if (!commit) return;
  throw new ConfigError(
    `A commit of ${commit.createdAt.toISOString()} is incomplete, since ${commit.damage}, and holds values of the previous key. Repair that (docs/operating/incidents.md, Streams that others have changed): stop api and dispatcher, and run inkpad move-events --to postgres, which completes the commit. Then run this again.`,
  );
}

async function beginRotation(pool: Pool, current: Buffer, previous: Buffer): Promise<void> {
  const update = await pool.query(
    `update master_key set fingerprint = $1, previous = $2, since = now()
     where fingerprint = $2 and previous is null`,
    [current, previous],
  );
  if (update.rowCount === 1) return;
  const state = await findSealingKeyRow(pool);
  const isSameRotation =
    state?.fingerprint.equals(current) && (!state.previous || state.previous.equals(previous));
  if (isSameRotation) return;
  throw new ConfigError(
    'The database is being rotated to another key: give that one as MASTER_KEY, and finish that rotation first.',
  );
}

type Counts = { sealed: number; unreadable: number };

async function resealAll(step: Step): Promise<Counts> {
  const all = { sealed: 0, unreadable: 0 };
  for (const column of step.columns) {
    const { sealed, unreadable } = await resealColumn(column, step);
    all.sealed += sealed;
    all.unreadable += unreadable;
  }
  return all;
}

async function resealColumn(column: SealedColumn, step: Step): Promise<Counts> {
  const { pool, prefix, print } = step;
  const { name, table, column: field, id, idType } = column;
  const otherKeyCondition = `${field} is not null and substring(${field} from 1 for ${PREFIX_BYTES}) <> $1`;
  const { rows } = await pool.query<{ left: number }>(
    `select count(*) as left from ${table} where ${otherKeyCondition}`,
    [prefix],
  );
  const counts = { sealed: 0, unreadable: 0 };
  for (let after: unknown = null; ;) {
    const page = await pool.query<Sealed>(
      `select ${id} as id, ${field} as sealed from ${table}
       where ${otherKeyCondition} and ($2::${idType} is null or ${id} > $2) order by ${id} limit ${BATCH_SIZE}`,
      [prefix, after],
    );
    const last = page.rows.at(-1);
    if (!last) return counts;
    const resealed = page.rows.flatMap((row) => reseal(row, column, step));
    // Values that were changed or deleted meanwhile are left alone.
    const { rowCount } = await pool.query(
      `update ${table} t set ${field} = x.anew
       from unnest($1::${idType}[], $2::bytea[], $3::bytea[]) as x(id, was, anew)
       where t.${id} = x.id and t.${field} = x.was`,
      [
        resealed.map((row) => row.id),
        resealed.map((row) => row.sealed),
        resealed.map((row) => row.anew),
      ],
    );
    counts.sealed += rowCount ?? 0;
    counts.unreadable += page.rows.length - resealed.length;
    print(`${name}: ${counts.sealed} of ${rows[0]?.left ?? 0}`);
    after = last.id;
  }
}

type Sealed = { id: unknown; sealed: Buffer };

/** Reseals a value; returns none for one that neither key opens. It is lost either way, and must not block the rest. */
function reseal(
  { id, sealed }: Sealed,
  { name, purpose, getContext }: SealedColumn,
  { ring, print }: Step,
): (Sealed & { anew: Buffer })[] {
  try {
    const plain = ring.open(purpose, sealed, getContext(id));
    return [{ id, sealed, anew: ring.seal(purpose, plain, getContext(id)) }];
  } catch {
    print(`${name}: one cannot be opened by either key and is left as it is (${getContext(id)})`);
    return [];
  }
}

/**
 * Waits for everything that may still write values sealed earlier: transactions, and commits to EventStoreDB, which
 * hold a response until they are complete.
 * @throws ConfigError
 */
async function waitForCommits(pool: Pool): Promise<void> {
  const { rows } = await pool.query<{ xact: string; now: string }>(
    'select pg_current_xact_id()::text as xact, now()::text as now',
  );
  const [start] = rows;
  await retryUntil(
    { withinMs: COMMIT_TIMEOUT_MS, delayMs: POLL_MS },
    async () => {
      await assertNoneWaitsForRepair(pool);
      const pending = await pool.query<{ under_way: boolean }>(
        `select pg_snapshot_xmin(pg_current_snapshot()) <= $1::text::xid8
           or exists (select from es.intents where created_at < $2::timestamptz) as under_way`,
        [start?.xact, start?.now],
      );
      return pending.rows[0]?.under_way === false || RETRY;
    },
    () =>
      new ConfigError(
        'A transaction or a commit to EventStoreDB is still open: see that the dispatcher is running and nothing else hangs, then run this again.',
      ),
  );
}
