import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { createTestDatabase, createTestEnvironment } from '../support/database/database.js';
import { writeNeighboursEvents } from '../support/emulators/eventstoredb/neighbours.js';
import { startEventStoreDb, type EventStoreDb } from '../support/emulators/eventstoredb/server.mjs';
import { eventually } from '../support/jest/eventually.js';
import { startProgram } from '../support/services/program.js';

const SLOW = 900_000;
const NEIGHBOURS_EVENTS = 100_000;

let server: EventStoreDb;

beforeAll(async () => {
  // A look at all of them takes two seconds.
  server = await startEventStoreDb({ searchMs: 20 });
  await writeNeighboursEvents(server.connectionString, NEIGHBOURS_EVENTS);
}, SLOW);
afterAll(() => server.stop(), SLOW);

it.each([
  [20, 'on KurrentDB, beside 100,000 events of somebody else', true],
  [5, 'on PostgreSQL', false],
])(
  '%i first starts of two apis, a dispatcher and the first store %s all begin',
  async (starts, _engine, isOnKurrentDb) => {
    const searched = server.requestCounts.searched;
    for (let n = 0; n < starts; n++) {
      const database = await createTestDatabase();
      const environment = createTestEnvironment(database.url, {
        EVENT_STORE_URL: isOnKurrentDb ? server.connectionString : '',
        EVENT_STORE_STREAM_PREFIX: `start${n}_`,
        LOG_LEVEL: 'info',
      });
      const setup = startProgram('dist/apps/cli/setup.js', environment);
      const services = ['api', 'api', 'dispatcher'].map((name) =>
        startProgram(`dist/apps/${name}/main.js`, environment),
      );
      try {
        expect([await setup.exitCode, setup.output()]).toEqual([
          0,
          expect.stringContaining('"api_token"'),
        ]);
        for (const api of services.slice(0, 2))
          await eventually(api.output, (output) => output.includes('listening on'));
        await eventually(
          () => database.query('select from history'),
          ({ rowCount }) => (rowCount ?? 0) > 0,
        );
      } finally {
        await Promise.all(services.map((service) => service.kill('SIGTERM')));
      }
      expect(await Promise.all(services.map(({ exitCode }) => exitCode))).toEqual([0, 0, 0]);
      const output = services.map((service) => service.output()).join('');
      expect(output).not.toMatch(/"level":"(error|fatal)"/);
      await database.close();
    }
    expect(server.requestCounts.searched - searched).toBeLessThan(NEIGHBOURS_EVENTS);
  },
  SLOW,
);
