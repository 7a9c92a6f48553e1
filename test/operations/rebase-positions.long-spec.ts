import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import type { StoredEvent } from '#platform/event-store/port/event-store.js';
import { formatPosition } from '#platform/event-store/port/position.js';
import { readConfig } from '#configuration/config.js';
import {
  startPostgres,
  type EmbeddedPostgres,
} from '../../apps/cli/local-postgres/embedded-postgres.mjs';
import { createTestEnvironment } from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';
import { findFreePort, runNode, startProgram, type Program } from '../support/services/program.js';
import { Receiver, type Received } from '../support/emulators/webhook-receiver.js';
import { Client, startService } from '../support/services/service.js';
import { readHistory, openStore } from '../support/database/event-store.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

const API = 'dist/apps/api/main.js';
const DISPATCHER = 'dist/apps/dispatcher/main.js';
const REBASE = 'dist/apps/cli/rebase-positions.js';
const VERIFY = 'dist/apps/cli/verify.js';
const SLOW = 300_000;
const SETTINGS = {
  EVENT_STORE_URL: '',
  WEBHOOK_ALLOW_INSECURE_TARGETS: 'true',
  WEBHOOK_TIME_SCALE: '100',
};

/** The server that the dump is restored to: a new one, with low transaction ids. */
let restoredServer: EmbeddedPostgres;
let environment: NodeJS.ProcessEnv;
let receiver: Receiver;
let store: Client;
let path: string;
/** Subscribed in the middle of the history. */
let lateReceiver: Receiver;
let before: StoredEvent[];
const programs: Program[] = [];

beforeAll(async () => {
  [receiver, lateReceiver] = [await Receiver.start(), await Receiver.start()];
  const service = await startService(SETTINGS);
  try {
    await service.database.query(
      'do $$ begin for i in 1..20000 loop perform pg_current_xact_id(); commit; end loop; end $$',
    );
    const owner = await service.newStore();
    await subscribe(owner, receiver);
    ({ path } = await enrol(owner));
    for (let i = 0; i < 3; i++) await owner.stamp(path);
    const dispatcher = startProgram(
      DISPATCHER,
      createTestEnvironment(service.database.url, { ...SETTINGS, ...service.environment }),
    );
    await eventually(
      () => service.database.query(`select 1 from webhook_deliveries where status = 'delivered'`),
      (delivered) => delivered.rowCount === 3,
    );
    await eventually(
      () => service.database.query(`select from history where name = 'stamp.earned'`),
      (places) => places.rowCount === 3,
    );
    await dispatcher.kill('SIGTERM');
    await subscribe(owner, lateReceiver);
    for (let i = 0; i < 2; i++) await owner.stamp(path);
    await service.database.query(
      `insert into webhook_active_spans (subscription_id, active_from, active_until)
       select id, active_from, active_from from webhook_subscriptions`,
    );
    before = await service.history();

    const dataDir = mkdtempSync(join(tmpdir(), 'inkpad-restored-'));
    restoredServer = await startPostgres({ dataDir, tie: true, settings: { fsync: 'off' } });
    const port = await findFreePort();
    environment = createTestEnvironment(restoredServer.url, {
      ...SETTINGS,
      DATABASE_MIGRATION_URL: restoredServer.ownerUrl,
      PORT: String(port),
    });
    store = new Client(`http://127.0.0.1:${port}`, owner.accountId, owner.token);
    const migration = run('dist/apps/cli/migrate.js');
    if (migration.status !== 0) throw new Error(`migration failed:\n${migration.output}`);
    await dumpAndRestore(service.database.ownerUrl, restoredServer.ownerUrl);
  } finally {
    await service.stop();
  }
}, SLOW);

afterAll(async () => {
  await Promise.all(programs.map((program) => program.kill('SIGTERM')));
  await Promise.all([receiver.stop(), lateReceiver.stop()]);
  await restoredServer.remove();
}, SLOW);

describe('a database restored from a logical dump', () => {
  it.each([API, DISPATCHER, VERIFY])(
    'is refused by %s in one sentence that says what to do',
    (program) => {
      const { status, output } = run(program);
      expect(status).toBe(program === VERIFY ? 1 : 78);
      expect(output.trim()).toBe(
        'The events in this database carry positions of another PostgreSQL server, as after a restored dump: run inkpad rebase-positions once, then start again.',
      );
    },
  );

  it('is accepted by inkpad migrate', () => {
    expect(run('dist/apps/cli/migrate.js')).toEqual({
      status: 0,
      output: 'the database is up to date\n',
    });
  });

  it('is refused by inkpad rebase-positions while an api is connected', async () => {
    const api = await connect(restoredServer.url, 'inkpad api');
    const { status, output } = run(REBASE);
    await api.end();
    expect([status, output.trim()]).toEqual([
      1,
      'Inkpad is still connected to the database (inkpad api): stop the api, the dispatcher and all commands first.',
    ]);
  });

  it('is left unchanged by inkpad rebase-positions when events were appended after the restore', async () => {
    await query('create database appended template inkpad', 'postgres');
    const [url, ownerUrl] = [new URL(restoredServer.url), new URL(restoredServer.ownerUrl)];
    url.pathname = ownerUrl.pathname = '/appended';
    const appendedSettings = {
      ...environment,
      DATABASE_URL: url.href,
      DATABASE_MIGRATION_URL: ownerUrl.href,
    };
    const last = before.at(-1);
    if (!last) throw new Error('there is a history');
    const appendedStore = await openStore(readConfig(appendedSettings));
    const { stream, revision, hash } = last;
    const again = { ...last, id: randomUUID() };
    await appendedStore.store.commit({
      accountId: store.accountId,
      writes: [{ stream, expected: { revision, hash }, events: [again] }],
    });
    await appendedStore.close();
    const events = await query('select tx::text, pos, event_id from es.events', 'appended');
    const { status, output } = run(REBASE, appendedSettings);
    expect([status, output.trim()]).toEqual([
      1,
      `The events of ${stream} are not in the order of their revisions, because events were appended after the restore. Nothing was changed.`,
    ]);
    expect(await query('select tx::text, pos, event_id from es.events', 'appended')).toEqual(
      events,
    );
  });

  it('keeps its order of events, constraints, triggers and grants when inkpad rebase-positions is run twice', async () => {
    const definition = await readDefinition();
    const expectedOutput = `${before.length} events are in their original order, at positions of this server\n`;
    expect(run(REBASE)).toEqual({ status: 0, output: expectedOutput });
    const history = await readHistory(environment);
    expect(history.map(withoutPosition)).toEqual(before.map(withoutPosition));
    const positions = await readPositions();
    expect(positions.map(({ position }) => position.slice(0, 20))).toEqual(
      positions.map(() => '1'.padStart(20, '0')),
    );
    const places = await readHistoryPlaces();
    expect(places.length).toBeGreaterThan(3);
    expect(places).toEqual(toPlaces(history).slice(0, places.length));
    expect(run(REBASE)).toEqual({ status: 0, output: expectedOutput });
    expect(await readHistory(environment)).toEqual(history);
    expect(await readHistoryPlaces()).toEqual(places);
    expect(await readPositions()).toEqual(positions);
    expect(await readDefinition()).toEqual(definition);
    await expect(query('delete from es.events')).rejects.toThrow('never changed or removed');
  });

  it(
    'gets new events at the end, and sends every webhook once, after inkpad rebase-positions',
    async () => {
      const sentBefore = receiver.received.map(getEventId);
      expect(sentBefore.length).toBe(3);
      programs.push(startProgram(API, environment), startProgram(DISPATCHER, environment));
      await eventually(
        () =>
          store.get(path).then(
            ({ status }) => status,
            () => 'no connection',
          ),
        (status) => status === 200,
      );
      for (let i = 0; i < 2; i++) {
        expect((await store.stamp(path)).status).toBe(200);
      }
      const history = await eventually(
        () => readHistory(environment),
        (events) => events.length > before.length + 1,
      );
      expect(history.slice(0, before.length).map(withoutPosition)).toEqual(
        before.map(withoutPosition),
      );
      expect(history.length).toBe(before.length + 2);

      await eventually(
        () => [receiver.received.length, lateReceiver.received.length],
        ([all = 0, some = 0]) => all >= 7 && some >= 4,
      );
      await eventually(
        () => query(`select 1 from webhook_deliveries where status <> 'delivered'`),
        (pending) => pending.length === 0,
      );
      const eventIds = receiver.received.map(getEventId);
      expect(eventIds.length).toBe(7);
      expect(new Set(eventIds).size).toBe(7);
      expect(eventIds.slice(0, 3)).toEqual(sentBefore);
      expect(lateReceiver.received.map(getEventId)).toEqual(eventIds.slice(3));

      await eventually(readHistoryPlaces, (places) => places.length === history.length);
      expect(await readHistoryPlaces()).toEqual(toPlaces(history));
      const verification = run(VERIFY);
      expect(verification.output).toContain('every read model matches its events');
      expect(verification.status).toBe(0);
    },
    SLOW,
  );
});

async function subscribe(client: Client, to: Receiver): Promise<void> {
  const { status } = await client.post(`${client.store}/webhook_subscriptions`, {
    events: ['stamp.earned'],
    target_url: to.url,
  });
  expect(status).toBe(201);
}

const getEventId = ({ headers }: Received) => headers['webhook-id'];

const withoutPosition = ({ position: _position, ...event }: StoredEvent) => event;

const toPlaces = (events: StoredEvent[]) =>
  events.map(({ id, position }) => ({ event_id: id, position: formatPosition(position) }));

const readHistoryPlaces = () => query('select event_id, position from history order by seq');

/** Reads everything that refers to positions. */
async function readPositions(): Promise<{ position: string }[]> {
  return (await query(
    `select subscription as name, position from es.positions
     union all select id::text, active_from from webhook_subscriptions
     union all select id::text || ' from', active_from from webhook_active_spans
     union all select id::text || ' until', active_until from webhook_active_spans order by 1`,
  )) as { position: string }[];
}

/** Reads the indexes, constraints, triggers, owner and grants of the events table. */
async function readDefinition(): Promise<unknown[]> {
  return query(
    `select indexdef as what from pg_indexes where schemaname = 'es' and tablename = 'events'
     union all select conname::text || pg_get_constraintdef(oid) from pg_constraint
       where conrelid = 'es.events'::regclass
     union all select tgenabled::text || pg_get_triggerdef(oid) from pg_trigger
       where tgrelid = 'es.events'::regclass
     union all select relowner::regrole::text || ' ' || coalesce(relacl::text, '') from pg_class
       where oid = 'es.events'::regclass
     union all select concat_ws(' ', attnum, attname, atttypid::regtype, attnotnull) from pg_attribute
       where attrelid = 'es.events'::regclass
     order by 1`,
  );
}

/** Copies all rows and sequences as pg_dump and pg_restore do. */
async function dumpAndRestore(fromUrl: string, toUrl: string): Promise<void> {
  const from = await connect(fromUrl);
  const to = await connect(toUrl);
  await to.query('set session_replication_role = replica');
  await to.query('create role inkpad_reader');
  await to.query('grant select on es.events to inkpad_reader');
  const { rows: tables } = await from.query<{ name: string; columns: string }>(
    `select format('%I.%I', table_schema, table_name) as name,
       string_agg(quote_ident(column_name), ', ') as columns
     from information_schema.columns join information_schema.tables t
       using (table_schema, table_name)
     where table_schema in ('public', 'es') and table_type = 'BASE TABLE'
       and table_name <> 'migrations' and is_generated = 'NEVER'
       and not exists (select from pg_inherits
         where inhrelid = format('%I.%I', table_schema, table_name)::regclass)
     group by 1`,
  );
  for (const { name, columns } of tables) {
    const { rows } = await from.query<{ dumped: string }>(
      `select coalesce(json_agg(t), '[]')::text as dumped from ${name} t`,
    );
    // Migrations insert rows into some tables, and a dump contains them too.
    const { rowCount } = await to.query(`select from ${name} limit 1`);
    if (rowCount !== 0) await to.query(`delete from ${name}`);
    await to.query(
      `insert into ${name} (${columns}) overriding system value
       select ${columns} from json_populate_recordset(null::${name}, $1)`,
      [rows[0]?.dumped],
    );
  }
  const { rows: sequences } = await from.query<{ name: string; value: string }>(
    `select format('%I.%I', schemaname, sequencename) as name, last_value::text as value
     from pg_sequences where last_value is not null`,
  );
  for (const { name, value } of sequences) await to.query('select setval($1, $2)', [name, value]);
  await from.end();
  await to.end();
}

async function query(statement: string, name = 'inkpad'): Promise<unknown[]> {
  const url = new URL(restoredServer.ownerUrl);
  url.pathname = `/${name}`;
  const client = await connect(url.href);
  try {
    return (await client.query(statement)).rows;
  } finally {
    await client.end();
  }
}

async function connect(url: string, name?: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, ...(name && { application_name: name }) });
  await client.connect();
  return client;
}

const run = (program: string, settings = environment) => runNode([program], settings);
