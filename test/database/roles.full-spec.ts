import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { migrate } from '#platform/database/migrate.js';
import { migrations } from '../../apps/schema/migrations.js';
import {
  testConfig,
  createTestDatabase,
  createTestEnvironment,
  type TestDatabase,
} from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';
import { runNode, startProgram } from '../support/services/program.js';
import { startService, type Service } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

const FORBIDDEN = /permission denied|must be owner/;

describe('the database role of the processes', () => {
  let service: Service;

  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service.stop());

  it('is no superuser, owns nothing and can create nothing', async () => {
    const rights = `select rolsuper, rolcreaterole, rolcreatedb, rolbypassrls,
        has_database_privilege(oid, current_database(), 'create') as database,
        has_schema_privilege(oid, 'public', 'create') as public,
        has_schema_privilege(oid, 'es', 'create') as es,
        exists (select from pg_class where relowner = r.oid) as owner,
        exists (select from pg_auth_members where member = r.oid
          and roleid <> 'pg_read_all_stats'::regrole) as member
      from pg_roles r where rolname = current_user`;
    expect((await queryAs(service.database.url, rights)).rows).toEqual([
      {
        rolsuper: false,
        rolcreaterole: false,
        rolcreatedb: false,
        rolbypassrls: false,
        database: false,
        public: false,
        es: false,
        owner: false,
        member: false,
      },
    ]);
  });

  it('suffices to enrol a customer and to stamp the card', async () => {
    const store = await service.newStore();
    const { path } = await enrol(store, { rewards: [1] });
    expect((await store.stamp(path, { external_ref: 'r' })).status).toBe(200);
  });

  it.each([
    'update es.events set type = type',
    'delete from es.events',
    'truncate es.events',
    'drop trigger events_are_final on es.events',
    'alter table es.events disable trigger all',
    'set session_replication_role = replica',
    'drop table es.events',
    'create or replace function es.refuse_event_change() returns trigger language plpgsql as $$ begin return old; end $$',
    'update audit_log set type = type',
    'delete from audit_log',
    'truncate audit_log',
    'drop trigger audit_log_is_final on audit_log',
    'update migrations set name = name',
    `select setval('es.global_seq', 1)`,
    'create table public.mine (id int)',
    'create function public.right(name, int) returns text language sql return null',
  ])('may not run: %s', async (statement) => {
    await expect(queryAs(service.database.url, statement)).rejects.toThrow(FORBIDDEN);
  });

  it('may raise a sequence of ids, as after a failover', async () => {
    const result = await queryAs(
      service.database.url,
      `select setval('customers_id', 1000) as last`,
    );
    expect(result.rows).toEqual([{ last: 1000 }]);
  });

  it('may create and drop the daily partitions of webhooks, and drop no other table', async () => {
    const day = `now() - interval '400 days'`;
    const url = service.database.url;
    await queryAs(url, `select webhook_make_partitions(${day}, ${day})`);
    const drop = (table: string) =>
      queryAs(
        url,
        `select webhook_drop_partitions('{${table}}', webhook_first_id(now() - interval '399 days')) as dropped`,
      );
    expect((await drop('customers')).rows).toEqual([]);
    expect((await drop('webhook_events')).rows).toEqual([
      { dropped: expect.stringMatching(/^webhook_events_\d{8}$/) },
    ]);
  });

  it('sees when the transactions of other roles started, which delay readers of the event store', async () => {
    const writer = new pg.Client(service.database.ownerUrl);
    await writer.connect();
    await writer.query('begin; select pg_current_xact_id()');
    const result = await queryAs(
      service.database.url,
      `select count(xact_start) as others from pg_stat_activity
       where datname = current_database() and usename <> current_user and backend_xid is not null`,
    );
    await writer.end();
    expect(result.rows).toEqual([{ others: 1 }]);
  });
});

describe('the audit log', () => {
  let database: TestDatabase;

  beforeAll(async () => {
    database = await createTestDatabase();
    await database.query(`insert into audit_log
      (type, actor, channel, request_id, subject, recorded_at) values ('t', '{}', 'cli', 'r', '{}', now())`);
  });
  afterAll(() => database.close());

  it.each(['update audit_log set type = type', 'delete from audit_log', 'truncate audit_log'])(
    'rejects a change even by its owner: %s',
    async (statement) => {
      await expect(database.query(statement)).rejects.toThrow('never changed or removed');
    },
  );

  it('lets es.forget_audit_addresses remove IP addresses of the days that it is given, and rejects other updates', async () => {
    await database.query(`insert into audit_log
      (type, actor, channel, request_id, ip_address, subject, recorded_at)
      select 'a', '{}', 'api', 'r', '192.0.2.7', '{}', now() - make_interval(days => days)
      from unnest(array[0, 89, 91, 400]) days`);
    for (const change of [
      "type = 'b'",
      "ip_address = '192.0.2.8'",
      "type = 'b', ip_address = null",
    ]) {
      await expect(
        database.query(
          `update audit_log set ${change} where recorded_at < now() - interval '90 days'`,
        ),
      ).rejects.toThrow('never changed or removed');
    }
    const forget = async () =>
      (await queryAs(database.url, 'select es.forget_audit_addresses(1, 90) as count')).rows;
    expect([await forget(), await forget(), await forget()]).toEqual([
      [{ count: 1 }],
      [{ count: 1 }],
      [{ count: 0 }],
    ]);
    const { rows } = await database.query(
      `select now() - recorded_at < interval '90 days' as "isRecent", count(*)::int from audit_log
       where ip_address is not null group by 1`,
    );
    expect(rows).toEqual([{ isRecent: true, count: 2 }]);
  });
});

describe('an installation with one database role', () => {
  const role = `app_${randomBytes(4).toString('hex')}`;
  let database: TestDatabase;
  let url: string;

  beforeAll(async () => {
    database = await createTestDatabase();
    const own = new URL(database.ownerUrl);
    own.username = role;
    own.password = `it's a "secret"`;
    url = own.href;
  });
  afterAll(async () => {
    await database.query(`drop owned by ${role}; drop role ${role}`);
    await database.close();
  });

  it('logs at start that its role could change the history, and what to run', async () => {
    const api = startProgram(
      'dist/apps/api/main.js',
      createTestEnvironment(database.ownerUrl, { LOG_LEVEL: 'warn' }),
    );
    await eventually(api.output, (output) => output.includes('inkpad migrate'));
    await api.kill('SIGTERM');
    expect(api.output()).toContain(
      'The database role inkpad could change the history without a trace',
    );
  });

  it('gets a second, restricted role when migrate runs with both URLs', async () => {
    const settings = createTestEnvironment(url, { DATABASE_MIGRATION_URL: database.ownerUrl });
    const first = runNode(['dist/apps/cli/migrate.js'], settings);
    expect(first).toEqual({ status: 0, output: 'the database is up to date\n' });
    await migrate(testConfig(url, { DATABASE_MIGRATION_URL: database.ownerUrl }), migrations);
    const { rows } = await queryAs(url, 'select current_user as name');
    expect(rows).toEqual([{ name: role }]);
    await expect(queryAs(url, 'delete from es.events')).rejects.toThrow(FORBIDDEN);
    await expect(queryAs(url, 'drop trigger events_are_final on es.events')).rejects.toThrow(
      FORBIDDEN,
    );
  });

  it('gets the command for an administrator when its owner cannot create roles', async () => {
    const owner = `owner_${randomBytes(4).toString('hex')}`;
    const migration = new URL(database.ownerUrl);
    migration.username = owner;
    migration.password = 'owner';
    const service = new URL(url);
    service.username = 'missing_role';
    const databaseName = migration.pathname.slice(1);
    await database.query(`create role ${owner} login password 'owner'`);
    await database.query(
      `grant select on migrations to ${owner}; grant all on database ${databaseName} to ${owner}`,
    );
    try {
      const settings = createTestEnvironment(service.href, {
        DATABASE_MIGRATION_URL: migration.href,
      });
      expect(runNode(['dist/apps/cli/migrate.js'], settings)).toEqual({
        status: 1,
        output: `The role missing_role of DATABASE_URL does not exist, and ${owner} of DATABASE_MIGRATION_URL may not make it: have an administrator run create role "missing_role" login password '…', then run inkpad migrate again.\n`,
      });
    } finally {
      await database.query(`drop owned by ${owner}; drop role ${owner}`);
    }
  });
});

async function queryAs(url: string, statement: string): Promise<pg.QueryResult> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return await client.query(statement);
  } finally {
    await client.end();
  }
}
