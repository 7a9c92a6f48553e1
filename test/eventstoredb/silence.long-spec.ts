import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { startEventStoreDb, type EventStoreDb } from '../support/emulators/eventstoredb/server.mjs';
import { eventually } from '../support/jest/eventually.js';
import { DatabaseProxy } from '../support/database/database-proxy.js';
import { startProgram } from '../support/services/program.js';
import { startService, type Client, type Service } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

/** A server, or the leader of a cluster, that stops responding: nothing is closed, and no error ever comes. */

const SLOW = 300_000;

let server: EventStoreDb;
let line: DatabaseProxy;
let service: Service;
let store: Client;

beforeAll(async () => {
  server = await startEventStoreDb();
  line = await DatabaseProxy.to(server.connectionString);
  // gRPC's own keep-alive does not notice the silence.
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
  const { status, body } = await store.stamp(path);
  return [status, body.stamps_count];
};

describe('an EventStoreDB that stops responding', () => {
  it(
    'gets a stamp that never arrived over a new connection',
    async () => {
      const { path } = await enrol(store);
      line.muteOpen();
      expect(await stamp(path)).toEqual([200, 1]);
      expect(await stamp(path)).toEqual([200, 2]);
    },
    SLOW,
  );

  it(
    'appends a stamp once although its response was lost',
    async () => {
      const { path } = await enrol(store);
      const { appended } = server;
      line.muteResponses();
      expect(await stamp(path)).toEqual([200, 1]);
      expect(server.appended).toBe(appended + 1);
      expect(await store.readBalance(path)).toBe(1);
    },
    SLOW,
  );

  it(
    'gets a commit with claims over a new connection',
    async () => {
      line.muteOpen();
      const { path } = await enrol(store);
      expect(await store.readBalance(path)).toBe(0);
    },
    SLOW,
  );

  it(
    'for longer than a commit may take leaves a request without a response, and later stamps succeed',
    async () => {
      const { path } = await enrol(store);
      line.mute();
      const response = await stamp(path).catch(() => 'no response');
      expect(response).toBe('no response');
      line.unmute();
      const [, count = 0] = await eventually(
        () => stamp(path),
        ([status]) => status === 200,
      );
      // The stamp without a response may have been added as well.
      expect([1, 2]).toContain(count);
      expect(await stamp(path)).toEqual([200, count + 1]);
    },
    SLOW,
  );

  it(
    'loses none of 250 pending appends that fill the connection, and does not end their process',
    async () => {
      const saturatedServer = await startEventStoreDb();
      const proxy = await DatabaseProxy.to(saturatedServer.connectionString);
      const program = startProgram('test/support/services/saturated-connection.mjs', {}, [
        proxy.url,
        '250',
        '20000',
      ]);
      try {
        await eventually(program.output, (output) => output.includes('connected'));
        proxy.muteOpen();
        program.signal('SIGCONT');
        expect(await program.exitCode).toBe(0);
        expect(program.output()).toContain('250 appended');
        expect(saturatedServer.appended).toBe(251);
      } finally {
        await program.kill('SIGKILL');
        await proxy.close();
        await saturatedServer.stop();
      }
    },
    SLOW,
  );
});
