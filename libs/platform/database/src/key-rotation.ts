import { setTimeout as wait } from 'node:timers/promises';
import type { Pool } from 'pg';
import { ConfigError } from '#kernel/config-error.js';
import { type PlatformConfig } from '#kernel/platform-config.js';
import { getKeyId, Keyring, createMasterKey, PREFIX_BYTES, getKeyPrefix } from '#kernel/keyring.js';
import { keyStateIn } from './master-keys.js';
import type { SealedColumn } from './sealed-column.js';

const AT_ONCE = 500;
/** Longer than processes take to notice which key seals: they look once a second. */
const NOTICED_WITHIN_MS = 5_000;
const SETTLED_WITHIN_MS = 120_000;
const LOOK_EVERY_MS = 500;

type Rotation = {
  pool: Pool;
  config: PlatformConfig;
  columns: SealedColumn[];
  say: (line: string) => void;
};
type Step = Rotation & { ring: Keyring; prefix: Buffer };

/** @property unreadable how many values neither key opens; they stay as they are */
export type Rotated = { key: string; sealed: number; unreadable: number };

/**
 * Reseals with MASTER_KEY everything that MASTER_KEY_PREVIOUS sealed, while the service runs. May be interrupted and
 * run again at any time: the key id at the beginning of each value shows what is done.
 * @throws ConfigError
 */
export async function rotateMasterKey(rotation: Rotation): Promise<Rotated> {
  const { pool, config, say } = rotation;
  if (config.masterKeyPrevious === null) {
    throw new ConfigError(
      'Set MASTER_KEY to the new key (openssl rand -base64 32) and MASTER_KEY_PREVIOUS to the former one in every process, restart them, then run this again.',
    );
  }
  const current = createMasterKey(config.masterKey);
  const previous = createMasterKey(config.masterKeyPrevious);
  const key = getKeyId(current.fingerprint);
  await refuseProcessesWithout(pool, key);
  await begin(pool, current.fingerprint, previous.fingerprint);
  say(`sealing with key ${key} instead of ${getKeyId(previous.fingerprint)}`);
  await wait(NOTICED_WITHIN_MS);
  const ring = new Keyring([current, previous], current);
  const step = { ...rotation, ring, prefix: getKeyPrefix(current.fingerprint) };
  const before = await sealAll(step);
  await untilCommitsEnded(pool);
  // From here on the database refuses values of the previous key; anything still in progress until then is found now.
  await pool.query('update master_key set previous = null where fingerprint = $1', [
    current.fingerprint,
  ]);
  await untilCommitsEnded(pool);
  const { sealed, unreadable } = await sealAll(step);
  return { key, sealed: before.sealed + sealed, unreadable };
}

/** @throws ConfigError while a process is connected that could not open what is sealed from now on */
async function refuseProcessesWithout(pool: Pool, key: string): Promise<void> {
  const { rows } = await pool.query<{ name: string }>(
    `select distinct application_name as name from pg_stat_activity
     where datname = current_database() and application_name ~ '^inkpad (api|dispatcher|script)'
       and application_name not like '%' || $1 || '%'
     order by name`,
    [key],
  );
  if (rows.length === 0) return;
  throw new ConfigError(
    `These processes do not have the new key ${key} yet: ${rows.map(({ name }) => name).join(', ')}. Restart them with MASTER_KEY and MASTER_KEY_PREVIOUS, then run this again.`,
  );
}

async function begin(pool: Pool, current: Buffer, previous: Buffer): Promise<void> {
  const begun = await pool.query(
    `update master_key set fingerprint = $1, previous = $2, since = now()
     where fingerprint = $2 and previous is null`,
    [current, previous],
  );
  if (begun.rowCount === 1) return;
  const state = await keyStateIn(pool);
  const goesOn =
    state?.fingerprint.equals(current) && (!state.previous || state.previous.equals(previous));
  if (goesOn) return;
  throw new ConfigError(
    'The database is being rotated to another key: give that one as MASTER_KEY, and finish that rotation first.',
  );
}

type Counts = { sealed: number; unreadable: number };

async function sealAll(step: Step): Promise<Counts> {
  const all = { sealed: 0, unreadable: 0 };
  for (const column of step.columns) {
    const { sealed, unreadable } = await sealColumn(column, step);
    all.sealed += sealed;
    all.unreadable += unreadable;
  }
  return all;
}

async function sealColumn(column: SealedColumn, step: Step): Promise<Counts> {
  const { pool, prefix, say } = step;
  const { name, table, column: field, id, idType } = column;
  const other = `${field} is not null and substring(${field} from 1 for ${PREFIX_BYTES}) <> $1`;
  const { rows } = await pool.query<{ left: number }>(
    `select count(*) as left from ${table} where ${other}`,
    [prefix],
  );
  const counts = { sealed: 0, unreadable: 0 };
  for (let after: unknown = null; ;) {
    const page = await pool.query<Sealed>(
      `select ${id} as id, ${field} as sealed from ${table}
       where ${other} and ($2::${idType} is null or ${id} > $2) order by ${id} limit ${AT_ONCE}`,
      [prefix, after],
    );
    const last = page.rows.at(-1);
    if (!last) return counts;
    const anew = page.rows.flatMap((row) => sealedAnew(row, column, step));
    // Values that were changed or deleted meanwhile are left alone.
    const { rowCount } = await pool.query(
      `update ${table} t set ${field} = x.anew
       from unnest($1::${idType}[], $2::bytea[], $3::bytea[]) as x(id, was, anew)
       where t.${id} = x.id and t.${field} = x.was`,
      [anew.map((row) => row.id), anew.map((row) => row.sealed), anew.map((row) => row.anew)],
    );
    counts.sealed += rowCount ?? 0;
    counts.unreadable += page.rows.length - anew.length;
    say(`${name}: ${counts.sealed} of ${rows[0]?.left ?? 0}`);
    after = last.id;
  }
}

type Sealed = { id: unknown; sealed: Buffer };

/** Undefined for a value that neither key opens: it is lost either way, and must not hold up the rest. */
function sealedAnew(
  { id, sealed }: Sealed,
  { name, purpose, contextOf }: SealedColumn,
  { ring, say }: Step,
): (Sealed & { anew: Buffer })[] {
  try {
    const plain = ring.open(purpose, sealed, contextOf(id));
    return [{ id, sealed, anew: ring.seal(purpose, plain, contextOf(id)) }];
  } catch {
    say(`${name}: one cannot be opened by either key and is left as it is (${contextOf(id)})`);
    return [];
  }
}

/**
 * Waits for everything that may still write values sealed earlier: transactions, and commits to EventStoreDB, which
 * hold a response until they are complete.
 * @throws ConfigError
 */
async function untilCommitsEnded(pool: Pool): Promise<void> {
  const { rows } = await pool.query<{ xact: string; now: string }>(
    'select pg_current_xact_id()::text as xact, now()::text as now',
  );
  const [asOf] = rows;
  for (const deadline = performance.now() + SETTLED_WITHIN_MS; ;) {
    const asked = await pool.query<{ under_way: boolean }>(
      `select pg_snapshot_xmin(pg_current_snapshot()) <= $1::text::xid8
         or exists (select from es.intents where created_at < $2::timestamptz) as under_way`,
      [asOf?.xact, asOf?.now],
    );
    if (asked.rows[0]?.under_way === false) return;
    if (performance.now() > deadline) {
      throw new ConfigError(
        'A transaction or a commit to EventStoreDB is still open: see that the dispatcher is running and nothing else hangs, then run this again.',
      );
    }
    await wait(LOOK_EVERY_MS);
  }
}
