import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { StatementCounter } from '../support/database/statement-counter.js';
import { createTestEnvironment } from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';
import { findFreePort, startProgram, type Program } from '../support/services/program.js';
import { startService, type LocalService } from '../support/services/service.js';

const BEATS = 20;
/**
 * Statements a beat, which comes once a second from each process: 7.5 of the api and 14 of the dispatcher when it was
 * measured. Raise it only for what cannot be announced.
 */
const MAX_STATEMENTS = { api: 12, dispatcher: 22 };
const SLOW = 180_000;

let service: LocalService;
let sql: { api: StatementCounter; dispatcher: StatementCounter };
const programs: Program[] = [];

beforeAll(async () => {
  service = await startService();
  const { url } = service.database;
  sql = { api: await StatementCounter.to(url), dispatcher: await StatementCounter.to(url) };
  const port = await findFreePort();
  const start = (name: keyof typeof sql, settings: NodeJS.ProcessEnv) => {
    const environment = createTestEnvironment(url, { ...settings, DATABASE_URL: sql[name].url });
    programs.push(startProgram(`dist/apps/${name}/src/main.js`, environment));
  };
  start('api', { PORT: String(port) });
  start('dispatcher', {});
  // The service in this process is one too.
  await eventually(listBeats, ({ length }) => length === 3);
}, SLOW);
afterAll(async () => {
  await Promise.all(programs.map((program) => program.kill('SIGTERM')));
  await Promise.all([sql.api.close(), sql.dispatcher.close()]);
  await service.stop();
}, SLOW);

async function listBeats(): Promise<string[]> {
  const { rows } = await service.database.query<{ beat: string }>(
    'select id || seen_at::text as beat from erasure_watchers',
  );
  return rows.map(({ beat }) => beat);
}

/** Waits for so many beats of each process. @returns how many there were of all */
async function countBeats(minimum: number): Promise<number> {
  const beats = new Set(await listBeats());
  const first = beats.size;
  await eventually(
    async () => {
      for (const beat of await listBeats()) beats.add(beat);
      return beats.size;
    },
    (size) => size >= first + 3 * minimum,
    SLOW,
  );
  return (beats.size - first) / 3;
}

it(
  'an idle api and an idle dispatcher send few statements, because work is announced',
  async () => {
    // What is due at the start is done by then, and polls come at their longest intervals.
    await countBeats(BEATS);
    const before = { api: sql.api.count, dispatcher: sql.dispatcher.count };
    const beats = await countBeats(BEATS);
    for (const name of ['api', 'dispatcher'] as const) {
      const perBeat = (sql[name].count - before[name]) / beats;
      expect({
        name,
        perBeat: perBeat > 0 && perBeat < MAX_STATEMENTS[name] ? 'few' : perBeat,
      }).toEqual({
        name,
        perBeat: 'few',
      });
    }
  },
  SLOW,
);
