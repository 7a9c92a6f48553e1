import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { setTimeout as wait } from 'node:timers/promises';
import {
  startEventStoreDbProcess,
  type EventStoreDbProcess,
} from '../support/emulators/eventstoredb/as-process.mjs';
import { createTestEnvironment } from '../support/database/database.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { eventually } from '../support/jest/eventually.js';
import { findFreePort, startProgram, type Program } from '../support/services/program.js';
import { Client, startService, type LocalService } from '../support/services/service.js';

const CALLERS = 16;
/** As long as the api looks for the outcome of an append. */
const FREEZE_MS = 30_000;
/** A commit that a freeze leaves unfinished is found a minute later, and again a minute after the second freeze. */
const CONFIRMED_WITHIN_MS = 300_000;
const SLOW = 600_000;

let server: EventStoreDbProcess;
let service: LocalService;
let api: Program;
let store: Client;

beforeAll(async () => {
  server = await startEventStoreDbProcess(['--delays']);
  service = await startService({ EVENT_STORE_URL: server.connectionString });
  const port = await findFreePort();
  api = startProgram(
    'dist/apps/api/main.js',
    createTestEnvironment(service.database.url, {
      EVENT_STORE_URL: server.connectionString,
      PORT: String(port),
    }),
  );
  const owner = await service.newStore();
  store = new Client(`http://127.0.0.1:${port}`, owner.accountId, owner.token);
  await eventually(
    () => store.get(`${store.store}/cards`).catch(() => ({ status: 0 })),
    ({ status }) => status === 200,
  );
}, SLOW);
afterAll(async () => {
  server.signal('SIGCONT');
  await api.kill('SIGTERM');
  await service.stop();
  await server.kill('SIGTERM');
}, SLOW);

it(
  'an event store that is frozen for 30 seconds twice, and thaws with late, repeated and cancelled responses, ends no process, and every stamp is stored once',
  async () => {
    const paths: string[] = [];
    for (let i = 0; i < CALLERS; i++) paths.push((await enrol(store)).path);
    const requestIds: string[] = [];
    let confirmedCount = 0;
    let isStamping = true;
    const callers = paths.map(async (path, caller) => {
      for (let n = 0; isStamping; n++) {
        const requestId = `freeze-${caller}-${n}`;
        requestIds.push(requestId);
        const headers = { 'x-request-id': requestId, 'idempotency-key': requestId };
        await eventually(
          () =>
            store.send('POST', `${path}/stamp`, { stamps: 1 }, headers).then(
              ({ status }) => status,
              () => 'no response' as const,
            ),
          (status) => {
            expect([200, 409, 503, 'no response']).toContain(status);
            return status === 200;
          },
          CONFIRMED_WITHIN_MS,
        );
        confirmedCount++;
      }
    });
    const waitForStamps = async () => {
      const before = confirmedCount;
      await eventually(
        () => confirmedCount,
        (count) => count > before + 10 * CALLERS,
      );
    };
    await waitForStamps();
    for (const isCancelled of [false, true]) {
      await server.control('doubleResponses', 10 * CALLERS);
      if (isCancelled) await server.control('loseResponses', 4 * CALLERS, 'cancel');
      server.signal('SIGSTOP');
      await wait(FREEZE_MS);
      server.signal('SIGCONT');
      await waitForStamps();
    }
    isStamping = false;
    await Promise.all(callers);

    const expected = new Set(requestIds);
    const storedIds = (await service.history())
      .filter(({ type, meta }) => type === 'StampsEarned' && expected.has(meta.requestId))
      .map(({ meta }) => meta.requestId);
    expect(storedIds.sort()).toEqual(requestIds.sort());
    const { rows } = await service.database.query<{ stamps: number }>(
      `select sum((state ->> 'stampsCount')::bigint)::int as stamps from customer_cards`,
    );
    expect(rows).toEqual([{ stamps: requestIds.length }]);
    await api.kill('SIGTERM');
    expect(await api.exitCode).toBe(0);
  },
  SLOW,
);
