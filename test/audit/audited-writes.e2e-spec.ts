import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { EntityManager } from 'typeorm';
import { UnavailableError } from '#platform/kernel/errors.js';
import { query } from '#platform/database/connection.js';
import { AuditedWrites } from '#platform/event-store/commands/audited-writes.service.js';
import { testConfig, createTestDatabase, type TestDatabase } from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';
import { openStore } from '../support/database/event-store.js';

let database: TestDatabase;
let connections: Awaited<ReturnType<typeof openStore>>;

beforeAll(async () => {
  database = await createTestDatabase();
  connections = await openStore(testConfig(database.url));
});

afterAll(async () => {
  await connections.close();
  await database.close();
});

// begin | the server ends the connection | the next statement
it.each([
  ['of TypeORM', (manager: EntityManager, text: string) => manager.query(text)],
  ['of query', (manager: EntityManager, text: string) => query(manager, text)],
])(
  'an audited write runs again when its connection breaks between two statements %s',
  async (_name, run) => {
    const writes = new AuditedWrites(connections.source, connections.responses);
    const tries: boolean[] = [];
    const writer = {
      actor: { type: 'system', id: 0 },
      channel: 'system',
      requestId: 'test',
    } as const;
    const result = await writes.write(writer, async ({ manager, isRepeated }) => {
      tries.push(isRepeated);
      const [row] = (await run(manager, 'select pg_backend_pid() as pid')) as { pid: number }[];
      if (!isRepeated) {
        await database.query('select pg_terminate_backend($1)', [row?.pid]);
        await eventually(
          () => Promise.resolve(manager.queryRunner?.isReleased),
          (isReleased) => isReleased === true,
        );
      }
      return (await run(manager, 'select 7 as result')) as { result: number }[];
    });
    expect(result).toEqual([{ result: 7 }]);
    expect(tries).toEqual([false, true]);
  },
);

it('query runs a statement within a transaction of TypeORM, and none after its end', async () => {
  const manager = await connections.source.transaction(async (manager) => {
    const current = 'select pg_current_xact_id()::text as id';
    expect(await query(manager, current)).toEqual(await manager.query(current));
    await query(manager, 'create temp table numbers on commit drop as select 1 as n');
    const update = { text: 'update numbers set n = n + $1 returning n', values: [2] };
    expect(await query(manager, update)).toEqual([{ n: 3 }]);
    return manager;
  });
  await expect(query(manager, 'select 1')).rejects.toThrow(UnavailableError);
  expect(await query(connections.source.manager, 'select 1 as n')).toEqual([{ n: 1 }]);
});
