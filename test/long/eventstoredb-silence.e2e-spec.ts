import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import type { CustomerCardDetailJson } from '#stamping/customer-card.dto.js';
import { startEventStoreDb, type EventStoreDb } from '../support/emulators/eventstoredb/server.mjs';
import { eventually } from '../support/jest/eventually.js';
import { DatabaseProxy } from '../support/database/database-proxy.js';
import { startProgram } from '../support/services/program.js';
import { startService, type Client, type Service } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

/** A server, or the leader of a cluster, that falls silent: nothing is closed, and no error ever comes. */

const SLOW = 300_000;

let server: EventStoreDb;
let line: DatabaseProxy;
let service: Service;
let store: Client;

beforeAll(async () => {
  server = await startEventStoreDb();
  line = await DatabaseProxy.to(server.connectionString);
  // Nothing of gRPC's own notices the silence.
  service = await startService({ EVENT_STORE_URL: `${line.url}&keepAliveInterval=600000` });
  store = await service.newStore();
}, SLOW);
afterEach(() => line.unmute());
afterAll(async () => {
  await service.stop();
  await line.close();
  await server.stop();
}, SLOW);

const stamp = async (path: string) => {
  const { status, body } = await store.post<CustomerCardDetailJson>(`${path}/stamp`, { stamps: 1 });
  return [status, body.stamps_count];
};
const balance = async (path: string) =>
  (await store.get<CustomerCardDetailJson>(path)).body.stamps_count;

describe('a server that falls silent', () => {
  it(
    'is asked over a new connection: a stamp that never arrived is made',
    async () => {
      const { path } = await enrol(store);
      line.muteOpen();
      expect(await stamp(path)).toEqual([200, 1]);
      expect(await stamp(path)).toEqual([200, 2]);
    },
    SLOW,
  );

  it(
    'is asked over a new connection: a stamp whose answer was lost is made once',
    async () => {
      const { path } = await enrol(store);
      const { appended } = server;
      line.muteResponses();
      expect(await stamp(path)).toEqual([200, 1]);
      expect(server.appended).toBe(appended + 1);
      expect(await balance(path)).toBe(1);
    },
    SLOW,
  );

  it(
    'is asked over a new connection: commits with claims',
    async () => {
      line.muteOpen();
      const { path } = await enrol(store);
      expect(await balance(path)).toBe(0);
    },
    SLOW,
  );

  it(
    'for longer than a commit may take leaves it without an answer, and works on afterwards',
    async () => {
      const { path } = await enrol(store);
      line.mute();
      const stamped = await stamp(path).catch(() => 'no answer');
      expect(stamped).toBe('no answer');
      line.unmute();
      const [, count = 0] = await eventually(
        () => stamp(path),
        ([status]) => status === 200,
      );
      // The one that was not answered may have been made as well.
      expect([1, 2]).toContain(count);
      expect(await stamp(path)).toEqual([200, count + 1]);
    },
    SLOW,
  );

  it(
    'ends no process in which more appends wait than the connection has room for',
    async () => {
      const full = await startEventStoreDb();
      const way = await DatabaseProxy.to(full.connectionString);
      const program = startProgram('test/support/services/saturated-connection.mjs', {}, [
        way.url,
        '250',
        '20000',
      ]);
      try {
        await eventually(program.output, (output) => output.includes('connected'));
        way.muteOpen();
        program.signal('SIGCONT');
        expect(await program.exitCode).toBe(0);
        expect(program.output()).toContain('250 appended');
        expect(full.appended).toBe(251);
      } finally {
        await program.kill('SIGKILL');
        await way.close();
        await full.stop();
      }
    },
    SLOW,
  );
});
