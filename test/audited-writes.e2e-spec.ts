import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { AuditedWrites } from '#event-store/commands/audited-writes.service.js';
import { testConfig, createTestDatabase, type TestDatabase } from './support/database/database.js';
import { eventually } from './support/jest/eventually.js';
import { openStore } from './support/database/event-store.js';

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
it('an audited write runs again when its connection breaks between two statements', async () => {
  const writes = new AuditedWrites(connections.source, connections.responses);
  const tries: boolean[] = [];
  const writer = {
    actor: { type: 'system', id: 0 },
    channel: 'system',
    requestId: 'test',
  } as const;
  const result = await writes.write(writer, async ({ manager, isRepeated }) => {
    tries.push(isRepeated);
    const [row] = (await manager.query('select pg_backend_pid() as pid')) as { pid: number }[];
    if (!isRepeated) {
      await database.query('select pg_terminate_backend($1)', [row?.pid]);
      await eventually(
        () => Promise.resolve(manager.queryRunner?.isReleased),
        (isReleased) => isReleased === true,
      );
    }
    return (await manager.query('select 7 as result')) as { result: number }[];
  });
  expect(result).toEqual([{ result: 7 }]);
  expect(tries).toEqual([false, true]);
});
