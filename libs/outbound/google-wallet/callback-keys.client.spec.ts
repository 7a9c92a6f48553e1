import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { createServer, type Server } from 'node:http';
import { generateKeyPairSync } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import type { Config } from '#configuration/config.js';
import { UnavailableError } from '#platform/kernel/errors.js';
import { CallbackKeys } from './callback-keys.client.js';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const spki = () =>
  generateKeyPairSync('ec', { namedCurve: 'P-256' })
    .publicKey.export({ type: 'spki', format: 'der' })
    .toString('base64');

let server: Server;
let keys: CallbackKeys;
let requestCount = 0;
let status = 200;
let now = performance.now();

beforeEach(async () => {
  requestCount = 0;
  status = 200;
  jest.spyOn(performance, 'now').mockImplementation(() => now);
  server = createServer((_request, response) => {
    requestCount++;
    const key = {
      keyValue: spki(),
      protocolVersion: 'ECv2SigningOnly',
      keyExpiration: String(Date.now() + 100 * HOUR),
    };
    response.writeHead(status).end(JSON.stringify({ keys: [key] }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const callbackKeysUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys`;
  keys = new CallbackKeys({ google: { callbackKeysUrl }, outboundProxy: null } as Config);
});
afterEach(async () => {
  jest.restoreAllMocks();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

describe('CallbackKeys', () => {
  it('fetches the keys once for concurrent callers, and again after an hour', async () => {
    const all = await Promise.all([keys.get(), keys.get(), keys.get()]);
    expect(all.map(({ length }) => length)).toEqual([1, 1, 1]);
    await keys.get();
    expect(requestCount).toBe(1);
    now += HOUR + 1;
    await keys.get();
    expect(requestCount).toBe(2);
  });

  it('fetches the keys again for an unknown signature, at most once a minute', async () => {
    const [before] = await keys.get();
    expect(await keys.refreshAfterUnknownSignature()).toBe(false);
    now += MINUTE;
    expect(await keys.refreshAfterUnknownSignature()).toBe(true);
    expect(await keys.refreshAfterUnknownSignature()).toBe(false);
    const [after] = await keys.get();
    expect(after?.key.equals(before?.key ?? after.key)).toBe(false);
    expect(requestCount).toBe(2);
  });

  it('fails while the keys cannot be fetched, without a request for every caller', async () => {
    status = 503;
    await expect(keys.get()).rejects.toThrow(UnavailableError);
    await expect(keys.get()).rejects.toThrow(UnavailableError);
    expect(requestCount).toBe(1);
    status = 200;
    now += 5_001;
    expect(await keys.get()).toHaveLength(1);
  });

  it('keeps the keys while new ones cannot be fetched', async () => {
    await keys.get();
    status = 500;
    now += HOUR + 1;
    expect(await keys.get()).toHaveLength(1);
    expect(await keys.get()).toHaveLength(1);
    expect(requestCount).toBe(2);
  });
});
