import { connect, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from '@jest/globals';
import { Browser } from '../support/browser/browser.js';
import {
  expectFailure,
  useService,
  type ContractClient,
  type Failure,
} from '../support/http/contract.js';
import { openSecondStore } from '../support/fixtures/second-store.js';
import { eventually } from '../support/jest/eventually.js';
import type { ApiResponse } from '../support/services/service.js';

const MIB = 1024 * 1024;
const FILE = 20 * MIB;
const CSV = 'first_name,email\nAda,ada@example.com\n';

const service = useService({
  RATE_LIMIT_PER_MINUTE: '100000',
  STORE_RATE_LIMIT_PER_MINUTE: '100000',
});

const sockets = new Set<Socket>();
afterEach(() => {
  for (const socket of sockets) socket.destroy();
  sockets.clear();
});

type Upload = {
  method?: string;
  path?: string;
  type?: string;
  /** Undefined: a chunked body. */
  length?: number | undefined;
  headers?: string[];
};

/** Sends the header of an upload and the beginning of its body, and holds the rest back. */
function hold(
  client: ContractClient,
  {
    method = 'POST',
    path = `${client.store}/imports`,
    type = 'text/csv',
    headers,
    ...rest
  }: Upload = {},
): Socket {
  const length = 'length' in rest ? rest.length : FILE;
  const { hostname, port } = new URL(service.running.baseUrl);
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
  sockets.add(socket);
  socket.on('error', () => undefined);
  const lines = [
    `${method} ${path} HTTP/1.1`,
    'Host: cards.example',
    `Content-Type: ${type}`,
    ...(headers ?? [`Authorization: Bearer ${client.token ?? ''}`]),
    length === undefined ? 'Transfer-Encoding: chunked' : `Content-Length: ${length}`,
  ];
  socket.write(`${lines.join('\r\n')}\r\n\r\n${length === undefined ? '1\r\na\r\n' : 'a'}`);
  return socket;
}

/** Sends an upload that is complete, small and refused with 422 where there is room for it. */
const probe = (client: ContractClient) =>
  client.send<Failure>('PUT', `${client.store}/logo`, Buffer.from('no picture'), {
    'content-type': 'image/png',
  });

/** Reads the status of the response that comes before the body is sent. */
const readStatus = (socket: Socket): Promise<number> =>
  new Promise((resolve) => {
    socket.once('data', (data) => {
      resolve(Number(/^HTTP\/1.1 (\d+)/.exec(data.toString('latin1'))?.[1]));
    });
  });

const untilStatus = (client: ContractClient, status: number) =>
  eventually(
    () => probe(client),
    (response) => response.status === status,
  );

const LOGO_HEADER: Upload = { method: 'PUT', type: 'image/png', length: 1_000 };

/** Lets two uploads of the store be under way: by default a file of 20 MiB and a logo. @returns the response to a third */
async function fill(
  client: ContractClient,
  both: [Upload, Upload] = [{}, { ...LOGO_HEADER, path: `${client.store}/logo` }],
): Promise<{ uploads: Socket[]; response: ApiResponse<Failure> }> {
  const uploads = both.map((upload) => hold(client, upload));
  const response = await eventually(
    () => {
      // While the probe was under way, there was no room for one of them.
      for (const [i, upload] of both.entries()) {
        if ((uploads[i]?.bytesRead ?? 0) > 0) uploads[i] = hold(client, upload);
      }
      return probe(client);
    },
    ({ status }) => status === 503,
  );
  return { uploads, response };
}

const sendFile = (client: ContractClient) =>
  client.send('POST', `${client.store}/imports?dry_run=true`, Buffer.from(CSV), {
    'content-type': 'text/csv',
  });

describe('uploads', () => {
  it('UPLOAD-01 At most two files of a store are uploaded at a time, pictures included: one more is 503 `unavailable` with `Retry-After`', async () => {
    const store = await service.newStore();
    const { response } = await fill(store);
    expectFailure(response, 503, 'unavailable');
    expect(response.body.error).toBe('2 uploads of this account are still under way');
    expect(response.body.resolution).toMatch(/Send the request again/);
    expect(response.headers.get('retry-after')).toBe('5');
    expect((await sendFile(store)).status).toBe(503);
    expect((await store.post(`${store.store}/cards`, { card: { name: 'Tea' } })).status).toBe(201);
  });

  it('UPLOAD-02 Files that are uploaded in the console count as uploads of the store too', async () => {
    const store = await service.newStore();
    const owner = await Browser.signedIn(service.running, store.email);
    const form: Upload = {
      path: `/app/stores/${store.accountId}/transfers/imports`,
      type: 'multipart/form-data; boundary=x',
      headers: [`Cookie: ${owner.cookie}`, 'Origin: https://cards.example'],
    };
    const { uploads } = await fill(store, [form, form]);
    const page = `/app/stores/${store.accountId}/brand`;
    const refused = await owner.upload(page, `${page}/logo`, {}, { logo: Buffer.from('x') });
    expect([refused.status, refused.text]).toEqual([503, expect.stringContaining('<h1')]);
    for (const socket of uploads) socket.destroy();
    await untilStatus(store, 422);
  });

  it('UPLOAD-03 The uploads of all stores that a process serves have room for 80 MiB: one that does not fit is 503 as well', async () => {
    const [first, second, third] = [
      await service.newStore(),
      await service.newStore(),
      await service.newStore(),
    ];
    await fill(first, [{}, {}]);
    // One store leaves room for the largest file of another.
    const { uploads } = await fill(second);
    expect(await readStatus(hold(third))).toBe(503);
    expect((await sendFile(third)).status).toBe(202);
    for (const socket of uploads) socket.destroy();
    await untilStatus(second, 422);
  });

  it('UPLOAD-04 An upload counts from its header on, with its `Content-Length` or, without one, with the maximum of the path', async () => {
    const chunked = { length: undefined };
    for (let i = 0; i < 3; i++) {
      const store = await service.newStore();
      await fill(store, [chunked, { ...LOGO_HEADER, path: `${store.store}/logo` }]);
    }
    const store = await service.newStore();
    expect(await readStatus(hold(store))).toBe(503);
    await fill(store, [{ length: MIB }, { length: 2 * MIB }]);
  });

  it('UPLOAD-05 An upload no longer counts once its response is sent, its connection is closed or its minute is over', async () => {
    const store = await service.newStore();
    const { uploads } = await fill(store, [{ length: CSV.length }, {}]);
    uploads[0]?.write(CSV.slice(1));
    await untilStatus(store, 422);
    uploads[1]?.destroy();
    const again = await fill(store, [{}, { length: undefined }]);
    again.uploads[0]?.destroy();
    await untilStatus(store, 422);
    again.uploads[1]?.destroy();
    // Both keep their side of the connection open after the 408.
    const server = service.running.app.getHttpServer();
    const { requestTimeout } = server;
    server.requestTimeout = 1_000;
    try {
      const slow = await fill(store, [{}, { length: undefined }]);
      expect(await Promise.all(slow.uploads.map(readStatus))).toEqual([408, 408]);
      await untilStatus(store, 422);
    } finally {
      server.requestTimeout = requestTimeout;
    }
  });

  it('UPLOAD-06 An upload that is refused for a reason of its own, such as 401, 413 or 415, counts for nothing', async () => {
    const store = await service.newStore();
    const uploads: [number, ContractClient, Upload][] = [
      [401, store.as(null), { headers: [] }],
      [413, store, { length: FILE + 1 }],
      [415, store, { type: 'application/json' }],
    ];
    for (const [status, client, upload] of uploads) {
      for (let i = 0; i < 3; i++) expect(await readStatus(hold(client, upload))).toBe(status);
    }
    expect((await sendFile(store)).status).toBe(202);
  });

  it('UPLOAD-07 An upload of which nothing arrives for five seconds is 408 `request_timeout`, and counts no longer', async () => {
    const store = await service.newStore();
    const { uploads } = await fill(store, [{}, { length: undefined }]);
    expect(await Promise.all(uploads.map(readStatus))).toEqual([408, 408]);
    await untilStatus(store, 422);
    // A byte now and then is no upload either.
    const slow = hold(store);
    const dripping = setInterval(() => slow.write('a'), 100);
    const slowStatus = await readStatus(slow);
    clearInterval(dripping);
    expect(slowStatus).toBe(408);
    await untilStatus(store, 422);
    // A slow line is one.
    const rows = Array.from({ length: 40_000 }, (_, i) => `Ada,ada${i}@example.com\n`).join('');
    const bytes = Buffer.from(`first_name,email\n${rows}`);
    const path = `${store.store}/imports?dry_run=true`;
    const socket = hold(store, { path, length: bytes.length + 1 });
    const responded = readStatus(socket);
    let sent = 0;
    // 100 KB a second.
    const sending = setInterval(() => {
      socket.write(bytes.subarray(sent, sent + 10_000));
      sent += 10_000;
      if (sent >= bytes.length) clearInterval(sending);
    }, 100);
    const status = await responded;
    clearInterval(sending);
    expect([202, 422]).toContain(status);
    expect(sent).toBeGreaterThanOrEqual(bytes.length);
  });

  it('UPLOAD-08 The uploads of all stores that share quotas have half of the room', async () => {
    const first = await service.newStore();
    const stores = [first];
    for (let i = 0; i < 2; i++) {
      const id = await openSecondStore(service.running, first);
      stores.push(Object.assign(Object.create(first) as ContractClient, { accountId: id }));
    }
    const [, second = first, third = first] = stores;
    await fill(first, [{}, {}]);
    const responses = [second, third].map((store) => probe(store));
    for (const response of await Promise.all(responses)) {
      expectFailure(response, 503, 'unavailable');
      expect(response.body.error).toBe('Too many of your files are being uploaded at once');
    }
    const stranger = await service.newStore();
    expect((await probe(stranger)).status).toBe(422);
    await fill(stranger, [{}, {}]);
  });
});
