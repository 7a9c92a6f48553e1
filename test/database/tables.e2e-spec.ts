import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { DataSource } from 'typeorm';
import { readModels } from '../../apps/read-models.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { startService, type LocalService } from '../support/services/service.js';

let service: LocalService;

beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.stop());

type Column = { name: string; type: string; nullable: string; generated: string };

async function listColumns(table: string): Promise<Column[]> {
  const { rows } = await service.database.query<Column>(
    `select column_name as name, data_type as type, is_nullable as nullable, is_generated as generated
     from information_schema.columns where table_schema = 'public' and table_name = $1 order by name`,
    [table],
  );
  return rows;
}

describe('entities', () => {
  it('have the columns of the migrated tables, and agree which may be null', async () => {
    const { entityMetadatas } = service.app.get(DataSource);
    expect(entityMetadatas.map(({ tableName }) => tableName)).toEqual(
      expect.arrayContaining(['users', 'memberships', 'api_tokens', 'audit_log', 'imports']),
    );
    for (const { tableName, columns } of entityMetadatas) {
      const columnsByName = new Map(
        (await listColumns(tableName)).map((column) => [column.name, column]),
      );
      const entityColumns = columns.map(({ databaseName, isNullable }) => {
        const column = columnsByName.get(databaseName);
        // A generated column may be null as far as PostgreSQL knows.
        return [databaseName, column?.nullable === 'YES' || isNullable];
      });
      expect([
        tableName,
        columns.map(({ databaseName }) => columnsByName.has(databaseName)),
      ]).toEqual([tableName, columns.map(() => true)]);
      expect(entityColumns).toEqual(
        columns.map(({ databaseName, isNullable }) => [databaseName, isNullable]),
      );
    }
  });
});

describe('read models', () => {
  it('of a new table are written once a migration has recreated the writers', async () => {
    const { database } = service;
    const readWriter = async () =>
      (
        await database.query<{ source: string }>(
          `select prosrc as source, prosecdef, proconfig, provolatile, proowner, proacl
           from pg_proc where oid = 'es.write_read_models'::regproc`,
        )
      ).rows.map(({ source, ...others }) => ({
        ...others,
        statements: new Set(source.match(/if '.*?end if;/gs)),
      }))[0];
    const before = await readWriter();
    await database.query(`
      create table toys (
        id bigint primary key,
        account_id bigint not null,
        revision bigint not null,
        hash bytea not null,
        projection_version int not null,
        state jsonb not null,
        name text generated always as (state ->> 'name') stored
      );
      call es.create_read_model_writers()`);
    const after = await readWriter();
    const addedStatements = [...(after?.statements ?? [])].filter(
      (statement) => !before?.statements.has(statement),
    );
    expect(addedStatements).toEqual([expect.stringMatching(/^if 'toys' = any/)]);
    expect(after).toEqual({
      ...before,
      statements: new Set([...(before?.statements ?? []), ...addedStatements]),
    });
    const row = { t: 'toys', s: 'toy-1', id: 1, a: 1, r: 0, h: 'ab', v: 1, st: { name: 'Bear' } };
    const stale = { ...row, st: { name: 'Fox' } };
    for (const written of [row, stale]) {
      await database.query(`select es.write_read_models('{toys}', $1, '{toy-1}')`, [
        JSON.stringify([written]),
      ]);
    }
    const { rows } = await database.query('select id, revision, name from toys');
    expect(rows).toEqual([{ id: 1, revision: 0, name: 'Bear' }]);
  });

  it('of customer cards have in their columns what is derived from their states, however they are written', async () => {
    const store = await service.newStore();
    const [one, other] = [await enrol(store, { rewards: [1] }), await enrol(store)];
    const reward = { reward_id: one.rewards[0]?.id };
    await store.stamp(one.path, 3);
    await store.post(`${one.path}/redeem`, reward);
    await Promise.all([one, other].map(({ path }) => store.stamp(path, 2)));
    const merge = `${store.store}/customers/${other.customer.id}/merge`;
    expect((await store.post(merge, { from_customer_id: one.customer.id })).status).toBe(200);
    const { rows } = await service.database.query<{ balance: number; matches: boolean }>(
      `select k.balance::int, to_jsonb(k) @> to_jsonb(d) as matches
       from customer_cards k, es.derive_customer_cards(k.state) d where k.id = any ($1) order by k.id`,
      [[one, other].map(({ customerCard }) => customerCard.id)],
    );
    expect(rows).toEqual([
      { balance: 4, matches: true },
      { balance: 2, matches: true },
    ]);
  });

  it('have the same columns, apart from those generated or derived from the state, and a sequence each', async () => {
    const shape = [
      { name: 'account_id', type: 'bigint' },
      { name: 'hash', type: 'bytea' },
      { name: 'id', type: 'bigint' },
      { name: 'projection_version', type: 'integer' },
      { name: 'revision', type: 'bigint' },
      { name: 'state', type: 'jsonb' },
    ];
    for (const { table } of readModels) {
      const derived = await service.database.query<{ name: string }>(
        `select a.name from pg_proc p, unnest(p.proargnames, p.proargmodes) as a(name, mode)
         where p.oid = to_regprocedure('es.derive_' || $1 || '(jsonb)') and a.mode = 't'`,
        [table],
      );
      const derivedNames = new Set(derived.rows.map(({ name }) => name));
      const writtenColumns = (await listColumns(table)).filter(
        ({ name, generated }) => generated === 'NEVER' && !derivedNames.has(name),
      );
      expect([table, writtenColumns]).toEqual([
        table,
        shape.map((column) => ({ ...column, nullable: 'NO', generated: 'NEVER' })),
      ]);
      const sequence = await service.database.query('select from pg_class where relname = $1', [
        `${table}_id`,
      ]);
      expect(sequence.rowCount).toBe(1);
    }
  });
});
