import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { buffer } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import type pg from 'pg';
import copyStreams from 'pg-copy-streams';
import { readConfig, type Config } from '#configuration/config.js';
import { ConfigError } from '#platform/kernel/config-error.js';
import { createKeyFile } from '#platform/kernel/key-file.js';
import type { MasterKey } from '#platform/kernel/keyring.js';
import { describeDatabase } from '#platform/database/first-connection.js';
import { isConnectionLoss } from '#platform/database/connection.js';
import { getMigrationNames, migrate } from '#platform/database/migrate.js';
import {
  hasUnfinishedRestore,
  markUnfinishedRestore,
} from '#platform/database/unfinished-restore.js';
import { migrations } from '../schema/migrations.js';
import {
  checkFiles,
  readMasterKeys,
  openManifest,
  readManifest,
} from './backup/backup-manifest.js';
import type { Manifest } from './backup/backup-manifest.js';
import {
  createCopyInSql,
  sortByReferences,
  quoteName,
  listTables,
  withoutTriggers,
} from './backup/backup-tables.js';
import { MARKERS } from './moves/engine-move.js';
import { moveLoggedPositions } from './logged-positions.js';
import { parseProgram } from './programs.js';
import { Progress } from './progress.js';
import { finishHistory, refuseUsedEventStore } from './backup/restore-history.js';
import { runProgram, printInstallation } from './run-program.js';
import { readSealed } from './backup/sealed-file.js';
import { recordRestore } from './recorded-restore.js';
import { withServicesStopped } from './stopped-services.js';

/**
 * Ids that are left out after a restore. Those given out after the backup are in other systems' tables: given out again,
 * they would mean another customer there.
 */
const ID_MARGIN = 100_000;
/** A sequence without a value has given out none before the backup, and maybe some after it. */
const RAISE_ID_SEQUENCES = `
  select setval(format('%I.%I', schemaname, sequencename)::regclass, coalesce(last_value, start_value) + $1::bigint)
  from pg_sequences where schemaname = 'public' and sequencename ~ '_id(_seq)?$'`;

/**
 * What was to be sent to customers when the backup was made may have been sent since. Nobody gets a message twice, and
 * rules look for what happens from now on.
 */
const END_MESSAGES = [
  `update outgoing_messages set state = 'skipped', channel = null, reason = 'past', due_at = null, process = null,
     finished_at = now() where kind = 'campaign' and state = 'queued'`,
  `update campaigns set is_addressed = true, due_at = now(), process = null where state = 'sending'`,
  `update campaigns set state = 'cancelled', due_at = null, process = null, finished_at = now()
   where state = 'scheduled' and send_at <= now()`,
  `update campaigns set checked_seq = greatest(checked_seq, (select max(seq) from history)), checked_until = now()
   where state = 'enabled'`,
];

/** A backup whose files were found whole, and what opens them. */
type Opened = { folder: string; manifest: Manifest; key: Buffer; masterKeys: MasterKey[] };

const program = parseProgram('restore');
const { check, intoDataFolder = false } = program.opts<{ check?: true; intoDataFolder?: true }>();
const [folder = ''] = program.args;

/**
 * Puts a backup into an empty database, in one transaction, and verifies it. Everything about the backup is checked
 * before anything is written: that it is whole and unchanged, that the master key opens it, and that this version knows
 * its tables. With EVENT_STORE_URL, the events then go to KurrentDB. Nothing starts before that is finished.
 */
runProgram(async () => {
  const backup = await openBackup(resolve(folder), !intoDataFolder);
  if (check) return;
  const config = readConfig(process.env);
  printInstallation({ ...config, databaseUrl: config.databaseMigrationUrl });
  const { manifest } = backup;
  await withServicesStopped(config.databaseMigrationUrl, 'restore', async (guard) => {
    await refuseUsed(guard, config);
    console.log('restoring …');
    await markUnfinishedRestore(guard);
    await migrate(config, migrations, manifest.migrations);
    await load(guard, backup, async () => {
      await forgetEngine(guard);
      // Before the commit: what it leaves cannot be restored again.
      await keepLocalFiles(config, backup, intoDataFolder);
    });
    await migrate(config, migrations, getMigrationNames(migrations));
    await endMessages(guard);
    await recordRestore(guard);
    await guard.query('analyze');
    await finishHistory(guard, config, manifest);
  });
  console.log('verifying …');
  await verify();
  console.log(describeRemainingSteps(manifest));
});

async function openBackup(folder: string, reading: boolean): Promise<Opened> {
  const manifest = readManifest(folder);
  const masterKeys = readMasterKeys(process.env);
  const key = openManifest(manifest, masterKeys);
  const names = getMigrationNames(migrations);
  const newer = manifest.migrations.filter((name) => !names.includes(name));
  if (newer.length > 0) {
    throw new ConfigError(
      `This backup was made by Inkpad ${manifest.inkpad} with tables that this version does not know (${newer.join(', ')}): restore it with that version. Nothing was changed.`,
    );
  }
  if (reading) {
    console.log(`checking the backup of ${manifest.database} from ${manifest.taken_at} …`);
    await checkFiles(folder, manifest);
  }
  return { folder, manifest, key, masterKeys };
}

/**
 * Refuses a database that is in use. One that was migrated and never used, or left by a restore that was not finished,
 * is empty as well.
 */
async function refuseUsed(client: pg.Client, config: Config): Promise<void> {
  if (await hasUnfinishedRestore(client)) return;
  if (config.eventStoreUrl !== null) await refuseUsedEventStore(config);
  const { rows: tables } = await client.query<{ there: boolean }>(
    `select to_regclass('es.events') is not null or to_regclass('public.migrations') is not null as there`,
  );
  if (!tables[0]?.there) return;
  const { rows } = await client.query<{ used: boolean }>(
    `select exists (select from es.events) or exists (select from users) or exists (select from accounts)
       or exists (select from audit_log) or exists (select from master_key) as used`,
  );
  if (!rows[0]?.used) return;
  throw new ConfigError(
    `The database ${describeDatabase(config.databaseMigrationUrl)} is in use. Restore into an empty database, for example a new one. Nothing was changed.`,
  );
}

/** @param last what is done before the commit */
async function load(
  client: pg.Client,
  { folder, manifest, key }: Opened,
  last: () => Promise<void>,
): Promise<void> {
  const here = new Map((await listTables(client)).map((table) => [table.name, table.columns]));
  for (const { name, columns } of manifest.tables) {
    if (columns.every((column) => here.get(name)?.includes(column))) continue;
    throw new ConfigError(`The backup has a table ${name} that Inkpad does not have.`);
  }
  const rows = manifest.tables.reduce((sum, table) => sum + table.rows, 0);
  const progress = new Progress('rows', rows);
  await client.query('begin');
  try {
    await client.query('set local statement_timeout = 0');
    for (const day of manifest.days) {
      await client.query(
        'select webhook_make_partitions(d, d) from (select $1::timestamptz as d) x',
        [`${day} 00:00Z`],
      );
    }
    const tables = await sortByReferences(client, manifest.tables);
    // Migrations put first rows into some tables; a backup brings them along.
    for (const { name } of tables.toReversed()) await emptyTable(client, name);
    for (const table of tables) {
      const into = client.query(copyStreams.from(createCopyInSql(table)));
      await pipeline(readSealed(join(folder, table.file), key, table.name), into);
      if (into.rowCount !== table.rows) {
        throw new Error(`${into.rowCount} of ${table.rows} rows of ${table.name} were taken`);
      }
      progress.add(table.rows);
    }
    for (const [name, value] of Object.entries(manifest.sequences)) {
      await client.query('select setval($1::regclass, $2::bigint)', [quoteName(name), value]);
    }
    await client.query(RAISE_ID_SEQUENCES, [ID_MARGIN]);
    await moveLoggedPositions(client, manifest.positions);
    await last();
    await client.query('commit');
    progress.end();
  } catch (error) {
    if (!isConnectionLoss(error)) await client.query('rollback');
    throw error;
  }
}

/** Ends the messages in the tables of this version, into which the migrations have moved those of an earlier backup. */
async function endMessages(client: pg.Client): Promise<void> {
  await client.query('begin');
  await client.query('set local statement_timeout = 0');
  for (const statement of END_MESSAGES) await client.query(statement);
  await client.query('commit');
}

/** Empties a table, even of rows that nobody may remove: those that a restore has left that was killed at its end. */
async function emptyTable(client: pg.Client, name: string): Promise<void> {
  const { rowCount } = await client.query(`select from ${quoteName(name)} limit 1`);
  if (rowCount === 0) return;
  await withoutTriggers(client, name, () => client.query(`delete from ${quoteName(name)}`));
}

/** Forgets of which engine the positions were: now they are all of this database. */
async function forgetEngine(client: pg.Client): Promise<void> {
  await client.query('delete from es.positions where subscription = any ($1)', [
    Object.values(MARKERS),
  ]);
  await client.query('update es.identity set linked_at = null');
}

/** Restores local files, except those that exist already. */
async function keepLocalFiles(
  config: Config,
  { folder, manifest, key, masterKeys }: Opened,
  withMasterKey: boolean,
): Promise<void> {
  for (const { name, file } of manifest.local) {
    const path = join(config.dataDir, name);
    if (existsSync(path)) continue;
    mkdirSync(config.dataDir, { recursive: true });
    const content = await buffer(readSealed(join(folder, file), key, name));
    writeFileSync(path, content, { mode: 0o600, flag: 'wx' });
  }
  const [masterKey] = masterKeys;
  const path = join(config.dataDir, 'master.key');
  if (!withMasterKey || !masterKey || config.isProduction || existsSync(path)) return;
  createKeyFile(path, masterKey.bytes.toString('base64'));
  console.log(`The master key is now in ${path}, where npm start reads it.`);
}

/** @throws ConfigError when anything differs */
async function verify(): Promise<void> {
  const program = fileURLToPath(new URL('verify.js', import.meta.url));
  const child = spawn(process.execPath, [program], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const [code] = (await once(child, 'exit')) as [number | null];
  if (code !== 0) {
    throw new ConfigError(
      'The backup was restored, but inkpad verify finds the differences above.',
    );
  }
}

function describeRemainingSteps({ taken_at: at, log }: Manifest): string {
  return `
Restored: everything as it was at ${at}, ${log.events.toLocaleString('en')} events.

Before anybody uses it:
- Nothing that happened later is here. Make sure that the service of which this is a backup does not run any more: both
  would send the webhooks and e-mails that were waiting then.
- Whoever was erased since then is back: inkpad erasure:repeat < your list of erasures
- What was waiting to be sent then is sent when the dispatcher starts, webhooks under the same webhook-id as before.
- A folder of checkpoints that covers more than ${log.events.toLocaleString('en')} events contradicts this history (docs/operating/incidents.md, HistoryContradictsCheckpoint).`;
}
