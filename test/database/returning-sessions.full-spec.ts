import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { ProcessSession } from '#platform/database/process-session.js';
import { eventually } from '../support/jest/eventually.js';
import { startService, startSession, type LocalService } from '../support/services/service.js';

const RETURN_SECONDS = 10;
const DEAD_PROCESS = 2_147_483;

let service: LocalService;
let session: ProcessSession;

beforeAll(async () => {
  service = await startService();
  session = service.app.get(ProcessSession, { strict: false });
  session.addLeases({ name: 'imports', holder: 'process', endsAt: 'due_at' });
  const store = await service.newStore();
  await store.send('POST', `${store.store}/imports`, 'first_name,email\nAnna,anna@example.com', {
    'content-type': 'text/csv',
  });
  // As a standby that is promoted has run for long.
  await eventually(
    () =>
      readRow<{ isOld: boolean }>(
        `select pg_postmaster_start_time() < now() - interval '${RETURN_SECONDS} seconds' as "isOld"`,
      ),
    ({ isOld }) => isOld,
  );
});
afterAll(() => service.stop());

async function readRow<R extends object>(text: string): Promise<R> {
  const { rows } = await service.database.query<R>(text);
  const [row] = rows;
  if (!row) throw new Error(`no row: ${text}`);
  return row;
}

/** Leases the import to a process that has no session. @returns how old the oldest session is when that lease ends */
async function measureGrace(): Promise<number> {
  await readRow(
    `update imports set process = ${DEAD_PROCESS}, due_at = now() + interval '1 hour' returning id`,
  );
  const { seconds } = await eventually(
    () =>
      readRow<{ seconds: number; hasEnded: boolean }>(
        `select i.due_at <= now() as "hasEnded", extract(epoch from i.due_at - a.began_at)::float8 as seconds
         from imports i, (select min(backend_start) as began_at
           from es.processes join pg_stat_activity using (pid)) a`,
      ),
    ({ hasEnded }) => hasEnded,
  );
  return seconds;
}

it('leases of a process without a session last until the oldest session is ten seconds old, also of a server that has run for long', async () => {
  startSession(service);
  await eventually(
    () => session.isHeld,
    (isHeld) => isHeld,
  );
  expect(await measureGrace()).toBeGreaterThanOrEqual(RETURN_SECONDS);
  // As in a failover, all sessions end at once.
  const before = await readRow<{ pid: number }>('select pid from es.processes');
  await readRow(`select pg_terminate_backend(${before.pid})`);
  await eventually(
    async () =>
      (await service.database.query<{ pid: number }>('select pid from es.processes')).rows,
    (rows) => rows.length === 1 && rows[0]?.pid !== before.pid,
  );
  expect(await measureGrace()).toBeGreaterThanOrEqual(RETURN_SECONDS);
}, 120_000);
