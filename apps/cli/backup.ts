import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, open, rename, rm } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { Readable } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import type pg from 'pg';
import copyStreams from 'pg-copy-streams';
import { readConfig, type Config } from '#configuration/config.js';
import { ConfigError } from '#platform/kernel/config-error.js';
import { getErrorMessage, UnavailableError } from '#platform/kernel/errors.js';
import { getKeyId, createMasterKey, type MasterKey } from '#platform/kernel/keyring.js';
import { VERSION } from '#platform/kernel/version.js';
import { connectFirst, describeDatabase } from '#platform/database/first-connection.js';
import { createDatabaseClient } from '#platform/database/database-client.js';
import { findSealingKeyRow } from '#platform/database/master-keys.js';
import type { Position } from '#platform/event-store/port/event-store.js';
import { LOG_TABLE, writeLog } from './backup/backup-log.js';
import {
  checkFiles,
  FORMAT,
  computeMac,
  MANIFEST,
  readManifest,
  sealKey,
} from './backup/backup-manifest.js';
import type { Manifest } from './backup/backup-manifest.js';
import {
  createCopyOutSql,
  listPartitionDays,
  readSequences,
  quoteName,
  listTables,
  type Table,
} from './backup/backup-tables.js';
import { cutLog } from './backup/log-cut.js';
import { listPositions, readLoggedPositions } from './logged-positions.js';
import { openLog, type OpenLog } from './backup/open-log.js';
import { parseProgram } from './programs.js';
import { Progress } from './progress.js';
import { recordBackup } from './administration/recorded-backups.js';
import { runProgram, printInstallation } from './run-program.js';
import { writeSealed } from './backup/sealed-file.js';

/** Beside the database, what a data folder has that cannot be made again. The master key is not among them. */
const LOCAL = ['local.json', 'checkpoint.key'];
const SNAPSHOT_TRIES = 5;
const SNAPSHOT_RETRY_MS = 2_000;

const program = parseProgram('backup');
const { check } = program.opts<{ check?: true }>();
const [named] = program.args;
const folder = chooseFolder();

/**
 * Copies the whole database as it is at one moment into a new folder, while the service runs: one transaction reads all
 * tables in the same snapshot. With KurrentDB the events are read from its log, up to the position that belongs to the
 * snapshot, and stored in the same format. Everything but the manifest is sealed.
 */
runProgram(async () => {
  if (check) {
    const manifest = readManifest(folder);
    await checkFiles(folder, manifest);
    console.log(`${folder} is complete: ${describeBackup(manifest)}`);
    return;
  }
  const config = readConfig(process.env);
  printInstallation(config);
  if (existsSync(folder)) throw new ConfigError(`${folder} already exists. Choose a new folder.`);
  const manifest = await backUp(config, folder);
  console.log(`${folder}: ${describeBackup(manifest)}`);
  console.log(describeKeys(config, manifest));
});

/** @returns the folder to write or to check */
function chooseFolder(): string {
  if (named !== undefined) return resolve(named);
  if (check) program.error('error: --check needs the folder of a backup');
  const time = new Date().toISOString().slice(0, 19).replaceAll(/[-:]/g, '');
  return resolve('backups', `inkpad-${time}Z`);
}

/** Writes a backup, under another name until it is complete, so that nobody takes half a backup for a whole one. */
async function backUp(config: Config, folder: string): Promise<Manifest> {
  const client = createDatabaseClient(config.databaseUrl, 'backup', { query_timeout: 0 });
  const draft = `${folder}.unfinished-${process.pid}`;
  let log: OpenLog | null = null;
  try {
    await connectFirst(config.databaseUrl, () => client.connect());
    log = await openLog(config, 'backup log');
    console.log(`backing up into ${folder} …`);
    await mkdir(dirname(folder), { recursive: true });
    await mkdir(draft, { mode: 0o700 });
    const manifest = await write(client, log, config, draft);
    await syncFolder(draft);
    await rename(draft, folder);
    await syncFolder(dirname(folder));
    await recordBackup(client, new Date(manifest.taken_at)).catch((error: unknown) =>
      // The backup is complete all the same.
      console.error(
        `It could not be recorded for the alert BackupIsOld: ${getErrorMessage(error)}`,
      ),
    );
    return manifest;
  } finally {
    await log?.close();
    await client.end();
    if (existsSync(draft)) await deleteDraft(draft);
  }
}

/** Deletes a backup that is not finished, and names it. */
async function deleteDraft(draft: string): Promise<void> {
  try {
    await rm(draft, { recursive: true, force: true });
    console.error(`The backup is not finished: ${draft} was deleted.`);
  } catch (error) {
    console.error(`The backup is not finished: delete ${draft} (${getErrorMessage(error)}).`);
  }
}

async function write(
  client: pg.Client,
  log: OpenLog | null,
  config: Config,
  folder: string,
): Promise<Manifest> {
  // Before the snapshot, so that what they say is never about something later.
  const local = LOCAL.map((name) => ({ name, path: join(config.dataDir, name) }))
    .filter(({ path }) => existsSync(path))
    .map(({ name, path }) => ({ name, content: readFileSync(path) }));
  const { tables, end } = await openSnapshot(client, log, config);
  const state = await findSealingKeyRow(client);
  if (!state)
    throw new ConfigError('This database is empty: the service has never been started on it.');
  const sealing = findMasterKey(config, state.fingerprint);
  const [id, key] = [randomUUID(), randomBytes(32)];
  const head = await readDatabaseFacts(client);
  const copied = tables.filter(({ name }) => !end || name !== LOG_TABLE);
  let written = await writeTables(client, copied, folder, key);
  const files = await writeLocalFiles(local, folder, key);
  const days = await listPartitionDays(client);
  let positions = end ? [] : await readLoggedPositions(client);
  let history: Manifest['log'] = {
    events: written.find(({ name }) => name === LOG_TABLE)?.rows ?? 0,
    last: head.last,
  };
  const stored = end ? await listPositions(client) : [];
  await client.query('commit');
  if (log && end) {
    const progress = new Progress('events', head.expected);
    const source = { store: log.store, end, positions: stored };
    const read = await writeLog({ folder, key, tables }, source, progress);
    written = [...written, read.table];
    ({ positions, log: history } = read);
  }
  const manifest = {
    format: FORMAT,
    id,
    taken_at: head.at.toISOString(),
    inkpad: VERSION,
    postgresql: head.server,
    database: describeDatabase(config.databaseUrl),
    engine: end ? 'eventstoredb' : 'postgresql',
    migrations: head.migrations,
    log: history,
    master_keys: [state.fingerprint, state.previous].flatMap((key) => key?.toString('hex') ?? []),
    key: sealKey(key, id, sealing),
    tables: written,
    // Last, so that none is behind an id of an event.
    sequences: await readSequences(client),
    days,
    positions,
    local: files,
  } as const satisfies Omit<Manifest, 'mac'>;
  const whole = { ...manifest, mac: computeMac(manifest, key) };
  await writeManifest(join(folder, MANIFEST), whole);
  return whole;
}

async function writeTables(
  client: pg.Client,
  tables: Table[],
  folder: string,
  key: Buffer,
): Promise<Manifest['tables']> {
  const written: Manifest['tables'] = [];
  for (const table of tables) {
    const file = `${table.name}.sealed`;
    const rows = copyStreams.to(createCopyOutSql(table, 'of any server'));
    // The copy's last row comes before the server's last word on it, which says how many there were.
    const end = once(client, 'drain');
    // A lost connection fails the copy as well.
    end.catch(() => undefined);
    const sealed = await writeSealed(join(folder, file), key, table.name, client.query(rows));
    await end;
    written.push({ ...table, rows: rows.rowCount, file, ...sealed });
  }
  return written;
}

async function writeLocalFiles(
  local: { name: string; content: Buffer }[],
  folder: string,
  key: Buffer,
): Promise<Manifest['local']> {
  const files: Manifest['local'] = [];
  for (const { name, content } of local) {
    const file = `${name}.sealed`;
    const sealed = await writeSealed(join(folder, file), key, name, Readable.from([content]));
    files.push({ name, file, ...sealed });
  }
  return files;
}

/**
 * Locks come before the snapshot: a table that is exchanged or dropped between the two would look empty. They keep
 * nobody from reading or writing. The transaction writes nothing, so no reader of the log waits for it.
 * @returns the tables, and the end of the log up to which they belong to it; null: events are among the tables
 */
async function openSnapshot(
  client: pg.Client,
  log: OpenLog | null,
  config: Config,
): Promise<{ tables: Table[]; end: Position | null }> {
  // Whether it can be read at all, before anything waits for the snapshot.
  await log?.store.head();
  for (let tries = 1; ; tries++) {
    const tables = await listTables(client);
    await client.query('begin transaction isolation level repeatable read read only');
    await client.query(
      `set local statement_timeout = 0; set local idle_in_transaction_session_timeout = 0; set local lock_timeout = '60s'`,
    );
    await client.query(
      `lock table ${tables.map(({ name }) => quoteName(name)).join(', ')} in access share mode`,
    );
    try {
      // The first query of the transaction, which takes the snapshot.
      const takeSnapshot = () => listTables(client);
      const { snapshot, end } = log
        ? await cutLog(config, log.store, takeSnapshot)
        : { snapshot: await takeSnapshot(), end: null };
      if (JSON.stringify(snapshot) === JSON.stringify(tables)) return { tables, end };
      if (tries === SNAPSHOT_TRIES) {
        throw new ConfigError(
          'The tables are being changed, for example by a migration. Try again later.',
        );
      }
    } catch (error) {
      if (!(error instanceof UnavailableError) || tries === SNAPSHOT_TRIES) throw error;
      await wait(SNAPSHOT_RETRY_MS);
    }
    await client.query('rollback');
  }
}

type DatabaseFacts = {
  at: Date;
  server: string;
  migrations: string[];
  last: Manifest['log']['last'];
  /** How many events the history table has. */
  expected: number;
};

async function readDatabaseFacts(client: pg.Client): Promise<DatabaseFacts> {
  const { rows } = await client.query<DatabaseFacts>(
    `select now() as at, current_setting('server_version') as server,
       array(select name from migrations order by id) as migrations,
       (select json_build_object('stream', stream_id, 'revision', revision, 'hash', encode(hash, 'hex'))
        from es.events order by tx desc, pos desc limit 1) as last,
       (select coalesce(max(seq) + 1, 0) from history) as expected`,
  );
  if (!rows[0]) throw new Error('a query without a table returns one row');
  return rows[0];
}

function findMasterKey({ masterKey, masterKeyPrevious }: Config, fingerprint: Buffer): MasterKey {
  const keys = [masterKey, masterKeyPrevious].flatMap((key) => (key ? [createMasterKey(key)] : []));
  const sealing = keys.find((key) => key.fingerprint.equals(fingerprint));
  if (sealing) return sealing;
  throw new ConfigError(
    `MASTER_KEY is not the key of this database (${getKeyId(fingerprint)}). Set it to the key that the service uses.`,
  );
}

async function writeManifest(path: string, manifest: Manifest): Promise<void> {
  const file = await open(path, 'wx', 0o600);
  try {
    await file.writeFile(`${JSON.stringify(manifest, null, 2)}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

function describeBackup({ taken_at, log, tables, local, database }: Manifest): string {
  const bytes = [...tables, ...local].reduce((sum, file) => sum + file.bytes, 0);
  const rows = tables.reduce((sum, table) => sum + table.rows, 0);
  const count = (n: number) => n.toLocaleString('en');
  return `${database} as it was at ${taken_at}: ${count(log.events)} events, ${count(rows)} rows in ${tables.length} tables, ${formatSize(bytes)}`;
}

function formatSize(bytes: number): string {
  return bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

function describeKeys(config: Config, { master_keys: keys }: Manifest): string {
  const ids = keys.map((fingerprint) => fingerprint.slice(0, 8)).join(' and ');
  const where = config.masterKeyFile ? config.masterKeyFile.path : 'MASTER_KEY of your settings';
  return `Without the master key ${ids} nobody can open it, you neither. The key is not in it: keep a copy of ${where} elsewhere.`;
}
