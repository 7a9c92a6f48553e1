import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { StatementCounter } from '../support/database/statement-counter.js';
import { createTestEnvironment } from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';
import { findFreePort, startProgram, type Program } from '../support/services/program.js';
import { startService, type LocalService } from '../support/services/service.js';

const HEARTBEATS = 15;
/**
 * Statements a heartbeat of erasures, which comes every two seconds from each process: 5 of the api and 11.5 of the
 * dispatcher when it was measured. Raise it only for what cannot be announced.
 */
const MAX_STATEMENTS = { api: 7, dispatcher: 15 };
/** Of both. */
const MAX_CONNECTIONS = 8;
const SLOW = 300_000;

let service: LocalService;
let sql: { api: StatementCounter; dispatcher: StatementCounter };
const programs: Program[] = [];

beforeAll(async () => {
  service = await startService();
  const { url } = service.database;
  sql = { api: await StatementCounter.to(url), dispatcher: await StatementCounter.to(url) };
  const port = await findFreePort();
  const start = (name: keyof typeof sql, settings: NodeJS.ProcessEnv) => {
    const environment = createTestEnvironment(url, {
      ...service.environment,
      ...settings,
      DATABASE_URL: sql[name].url,
    });
    programs.push(startProgram(`dist/apps/${name}/main.js`, environment));
  };
  start('api', { PORT: String(port) });
  start('dispatcher', {});
  // The service in this process is one too.
  await eventually(listHeartbeats, ({ length }) => length === 3);
}, SLOW);
afterAll(async () => {
  await Promise.all(programs.map((program) => program.kill('SIGTERM')));
  await Promise.all([sql.api.close(), sql.dispatcher.close()]);
  await service.stop();
}, SLOW);

async function listHeartbeats(): Promise<string[]> {
  const { rows } = await service.database.query<{ heartbeat: string }>(
    'select id || seen_at::text as heartbeat from erasure_watchers',
  );
  return rows.map(({ heartbeat }) => heartbeat);
}

/** Waits for so many heartbeats of each process. @returns how many there were of all */
async function countHeartbeats(minimum: number): Promise<number> {
  const heartbeats = new Set(await listHeartbeats());
  const first = heartbeats.size;
  await eventually(
    async () => {
      for (const heartbeat of await listHeartbeats()) heartbeats.add(heartbeat);
      return heartbeats.size;
    },
    (size) => size >= first + 3 * minimum,
    SLOW,
  );
  return (heartbeats.size - first) / 3;
}

it(
  'an idle api and an idle dispatcher send few statements, because work is announced',
  async () => {
    // What is due at the start is done by then, and polls come at their longest intervals.
    await countHeartbeats(HEARTBEATS);
    const before = { api: sql.api.count, dispatcher: sql.dispatcher.count };
    const heartbeats = await countHeartbeats(HEARTBEATS);
    for (const name of ['api', 'dispatcher'] as const) {
      const perHeartbeat = (sql[name].count - before[name]) / heartbeats;
      expect({
        name,
        perHeartbeat:
          perHeartbeat > 0 && perHeartbeat < MAX_STATEMENTS[name] ? 'few' : perHeartbeat,
      }).toEqual({
        name,
        perHeartbeat: 'few',
      });
    }
  },
  SLOW,
);

it(
  'an idle api and an idle dispatcher have at most eight connections',
  async () => {
    const count = await eventually(
      async () => sql.api.connectionCount + sql.dispatcher.connectionCount,
      (connections) => connections <= MAX_CONNECTIONS,
      SLOW,
    );
    expect(count).toBeGreaterThan(1);
  },
  SLOW,
);
