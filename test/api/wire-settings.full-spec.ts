import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import http from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import type { Failure, Problem } from '../support/http/contract.js';
import { createTestDatabase, createTestEnvironment } from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';
import { startProgram } from '../support/services/program.js';
import { exchange, rawGet } from '../support/http/raw-request.js';
import { Client, startService, type LocalService } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

let service: LocalService;
let store: Client;
let anonymous: Client;

beforeAll(async () => {
  service = await startService();
  store = await service.newStore();
  anonymous = new Client(service.baseUrl, store.accountId, null);
});
afterAll(() => service.stop());

describe('compression', () => {
  it('is not applied to a small response', async () => {
    const { headers } = await rawGet(`${service.baseUrl}/health/live`, {
      'accept-encoding': 'gzip, br',
    });
    expect(headers['content-encoding']).toBeUndefined();
    expect(headers['content-length']).toBe('15');
  });

  it('is applied to the script of the docs', async () => {
    const { headers } = await rawGet(`${service.baseUrl}/docs/reference/try/scalar.js`, {
      'accept-encoding': 'br',
    });
    expect(headers['content-encoding']).toBe('br');
  });
});

describe('HTTP methods', () => {
  it.each([
    ['PUT', '/api/v1/accounts', 'GET, HEAD, OPTIONS'],
    ['DELETE', '/api/v1/status', 'GET, HEAD, OPTIONS'],
    ['POST', '/docs', 'GET, HEAD, OPTIONS'],
    ['TRACE', '/api/v1/accounts', 'GET, HEAD, OPTIONS'],
    ['PROPFIND', '/api/v1/accounts', 'GET, HEAD, OPTIONS'],
  ])('without a route get 405 with the allowed ones: %s %s', async (method, path, allow) => {
    const response = await exchange(
      service.baseUrl,
      `${method} ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${store.token ?? ''}\r\nConnection: close\r\n\r\n`,
    );
    expect(response).toMatch(/^HTTP\/1\.1 405 Method Not Allowed\r\n/);
    expect(response.toLowerCase()).toContain(`\r\nallow: ${allow.toLowerCase()}\r\n`);
    expect(response).toContain('"code":"method_not_allowed"');
  });

  it('belong to the most specific path', async () => {
    const announcements = `${store.store}/announcements`;
    const listMethods = async (path: string) =>
      (await store.send('OPTIONS', path)).headers.get('allow');
    expect(await listMethods(`${announcements}/preview`)).toBe('OPTIONS, POST');
    expect(await listMethods(`${announcements}/7`)).toBe('GET, HEAD, OPTIONS, PATCH');
    for (const method of ['GET', 'PATCH']) {
      expect((await store.send(method, `${announcements}/preview`)).status).toBe(405);
      expect((await store.send(method, `${announcements}/%70review`)).status).toBe(405);
      expect((await store.send(method, `${announcements}/nothing`)).status).toBe(404);
    }
  });

  it('are listed by an OPTIONS request with a token only', async () => {
    const cards = `${store.store}/cards`;
    const { status, headers, text } = await store.send('OPTIONS', cards);
    expect([status, headers.get('allow'), text]).toEqual([204, 'GET, HEAD, OPTIONS, POST', '']);
    expect((await store.send('OPTIONS', '/api/v1/nothing')).status).toBe(404);
    expect((await anonymous.send('OPTIONS', cards)).status).toBe(401);
    expect((await anonymous.send('PUT', cards)).status).toBe(401);
  });
});

describe('CORS_ORIGINS', () => {
  it('does not change the response to an OPTIONS request that is no preflight', async () => {
    const corsService = await startService({ CORS_ORIGINS: 'https://shop.example' });
    try {
      const client = await corsService.newStore();
      const stranger = new Client(corsService.baseUrl, client.accountId, null);
      const plain = await client.send('OPTIONS', '/api/v1/accounts');
      expect([plain.status, plain.headers.get('allow')]).toEqual([204, 'GET, HEAD, OPTIONS']);
      expect((await stranger.send('OPTIONS', '/api/v1/accounts')).status).toBe(401);
      expect((await client.send('OPTIONS', '/api/v1/nothing')).status).toBe(404);
    } finally {
      await corsService.stop();
    }
  });
});

describe('requests in clear', () => {
  it('of programs get 403 and not a redirect, behind a proxy that says so, while pages are served', async () => {
    const behindProxy = await startService({ TRUST_PROXY_HOPS: '1' });
    const send = (path: string, headers: Record<string, string> = {}) =>
      fetch(behindProxy.baseUrl + path, { redirect: 'manual', headers });
    const http = { 'x-forwarded-proto': 'http' };
    const token = { authorization: 'Bearer x' };
    try {
      for (const path of ['/api/v1/status', '/api/v1/accounts', '/api/admin/v1/users']) {
        const response = await send(path, http);
        expect([path, response.status, await response.json()]).toEqual([
          path,
          403,
          expect.objectContaining({
            code: 'forbidden',
            resolution: expect.stringContaining('revoke it and create another'),
          }),
        ]);
      }
      for (const path of ['/mcp', '/wallet/apple/v1/passes/a/b']) {
        expect([path, (await send(path, { ...http, ...token })).status]).toEqual([path, 403]);
      }
      for (const headers of [{}, { 'x-forwarded-proto': 'https' }]) {
        expect((await send('/api/v1/status', headers)).status).toBe(200);
        expect((await send('/api/v1/accounts', { ...headers, ...token })).status).toBe(401);
      }
      expect((await send('/docs', http)).status).toBe(200);
    } finally {
      await behindProxy.stop();
    }
  });
});

describe('security headers', () => {
  it.each([
    '/api/v1/status',
    '/api/v1/nothing',
    '/docs',
    '/docs/errors',
    '/nowhere',
    '/health/live',
  ])('are set on %s', async (path) => {
    const { headers } = await anonymous.get(path);
    expect(headers.get('referrer-policy')).toBe('no-referrer');
    expect(headers.get('x-frame-options')).toBe('DENY');
    expect(headers.get('content-security-policy')).toMatch(/frame-ancestors 'none'/);
    expect(headers.get('content-security-policy')).toMatch(/default-src 'none'/);
    expect(headers.get('strict-transport-security')).toMatch(/max-age=31536000/);
    // Browsers heed it for documents alone.
    expect(headers.has('cross-origin-opener-policy')).toBe(!path.startsWith('/api/'));
  });

  it('name subdomains in Strict-Transport-Security only with HSTS_INCLUDE_SUBDOMAINS', async () => {
    const { headers } = await anonymous.get('/docs');
    expect(headers.get('strict-transport-security')).toBe('max-age=31536000');
    const strict = await startService({ HSTS_INCLUDE_SUBDOMAINS: 'true' });
    try {
      const response = await fetch(`${strict.baseUrl}/docs`);
      expect(response.headers.get('strict-transport-security')).toBe(
        'max-age=31536000; includeSubDomains',
      );
    } finally {
      await strict.stop();
    }
  });

  it('allow the docs page to run its own scripts', async () => {
    const { headers } = await anonymous.get('/docs');
    expect(headers.get('content-security-policy')).toContain("script-src 'self'");
  });

  it('leave out Strict-Transport-Security while PUBLIC_URL is http', async () => {
    const plain = await startService({ PUBLIC_URL: 'http://localhost:3000' });
    try {
      const { headers } = await fetch(`${plain.baseUrl}/api/v1/status`);
      expect(headers.get('strict-transport-security')).toBeNull();
    } finally {
      await plain.stop();
    }
  });
});

describe('problem details', () => {
  it('have a type that links to its section of the docs', async () => {
    const { body } = await anonymous.send<Problem>('GET', '/api/v1/accounts', undefined, {
      accept: 'application/problem+json',
    });
    const { pathname, hash } = new URL(body.type);
    const page = await anonymous.get(pathname);
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(page.text).toContain(`id="${hash.slice(1)}"`);
  });
});

describe('request bodies', () => {
  const cards = () => `${store.store}/cards`;
  const head = (path: string, ...more: string[]) =>
    [
      `POST ${path} HTTP/1.1`,
      'Host: x',
      `Authorization: Bearer ${store.token ?? ''}`,
      'Connection: close',
      ...more,
    ].join('\r\n');

  it.each([
    'application/json; charset=utf-8',
    'application/json;charset=UTF-8',
    'APPLICATION/JSON',
  ])('may have the content type %s', async (type) => {
    const creation = await store.send(
      'POST',
      cards(),
      { card: { name: 'Tea' } },
      {
        'content-type': type,
      },
    );
    expect(creation.status).toBe(201);
  });

  it('over 1 MiB get 413 even when they are sent in chunks', async () => {
    const chunk = 'x'.repeat(64 * 1024);
    const chunks = `${chunk.length.toString(16)}\r\n${chunk}\r\n`.repeat(20);
    const response = await exchange(
      service.baseUrl,
      `${head(cards(), 'Content-Type: application/json', 'Transfer-Encoding: chunked')}\r\n\r\n${chunks}0\r\n\r\n`,
      (text) => text.includes('payload_too_large'),
    );
    expect(response).toMatch(/^HTTP\/1\.1 413 [^]*"code":"payload_too_large"/);
  });

  it('over 1 MiB get a 413 that a client can read while it is still sending', async () => {
    const { pathname, origin } = new URL(cards(), service.baseUrl);
    const headers = {
      authorization: `Bearer ${store.token}`,
      'content-type': 'application/json',
    };
    for (const size of [2, 8, 32]) {
      const body = Buffer.alloc(size * 1024 * 1024, 'x');
      for (const length of [{ 'content-length': body.length }, {}]) {
        const request = http.request(origin + pathname, {
          method: 'POST',
          headers: { ...headers, ...length },
        });
        request.end(body);
        const [response] = (await once(request, 'response')) as [http.IncomingMessage];
        expect([size, response.statusCode, await text(response)]).toEqual([
          size,
          413,
          expect.stringContaining('payload_too_large'),
        ]);
      }
    }
  });

  it('are requested by 100 Continue when the client expects it, and not for another expectation', async () => {
    const body = JSON.stringify({ card: { name: 'Tea' } });
    const response = await exchange(
      service.baseUrl,
      `${head(cards(), 'Content-Type: application/json', `Content-Length: ${body.length}`, 'Expect: 100-continue')}\r\n\r\n${body}`,
    );
    expect(response).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 201 Created\r\n/);
    const other = await exchange(
      service.baseUrl,
      `${head(cards(), 'Content-Type: application/json', `Content-Length: ${body.length}`, 'Expect: a-miracle')}\r\n\r\n${body}`,
    );
    expect(other).toMatch(/^HTTP\/1\.1 201 Created\r\n/);
  });

  it('are ignored on DELETE', async () => {
    const { card } = await enrol(store);
    const path = `${store.store}/rewards`;
    for (const body of [undefined, {}, { reason: 'x' }]) {
      const reward = await store.post<{ id: number }>(path, {
        reward: { card_id: card.id, name: 'Cake', stamps_required: 3 },
      });
      const response = await store.send('DELETE', `${path}/${reward.body.id}`, body);
      expect([response.status, response.text]).toEqual([204, '']);
    }
  });

  it('may be missing on an action', async () => {
    const { card } = await enrol(store);
    for (const more of [[], ['Content-Length: 0'], ['Content-Type: application/json']]) {
      const response = await exchange(
        service.baseUrl,
        `${head(`${cards()}/${card.id}/archive`, ...more)}\r\n\r\n`,
      );
      expect(response).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    }
  });

  it.each([
    ['two lengths', 'Content-Length: 2\r\nContent-Length: 3'],
    ['a length and chunks', 'Content-Length: 2\r\nTransfer-Encoding: chunked'],
    ['an invalid length', 'Content-Length: x'],
  ])('with %s get 400 as JSON', async (_name, lengths) => {
    const response = await exchange(
      service.baseUrl,
      `${head(cards(), 'Content-Type: application/json', lengths)}\r\n\r\n{}`,
    );
    expect(response).toMatch(
      /^HTTP\/1\.1 400 [^]*application\/json[^]*"code":"malformed_request"[^]*"resolution":/,
    );
  });

  it('with a header larger than 16 KiB get 431 as JSON', async () => {
    const response = await exchange(
      service.baseUrl,
      `${head(cards(), `X-Long: ${'x'.repeat(20_000)}`)}\r\n\r\n`,
    );
    expect(response).toMatch(
      /^HTTP\/1\.1 431 [^]*application\/json[^]*"code":"header_fields_too_large"[^]*"resolution":/,
    );
    expect(response).toMatch(/x-request-id: [\da-f-]{36}/i);
  });
});

describe('an incomplete request', () => {
  let strictService: LocalService;
  let client: Client;

  beforeAll(async () => {
    strictService = await startService();
    client = await strictService.newStore();
    Object.assign(strictService.app.getHttpServer(), {
      headersTimeout: 500,
      requestTimeout: 1_000,
    });
  });
  afterAll(() => strictService.stop());

  const createHeader = (method: string, path: string, ...more: string[]) =>
    [
      `${method} ${path} HTTP/1.1`,
      'Host: x',
      `Authorization: Bearer ${client.token ?? ''}`,
      ...more,
      '',
      '',
    ].join('\r\n');

  it('has 15 seconds for its header and a minute in all', () => {
    const { headersTimeout, requestTimeout } = service.app.getHttpServer();
    expect([headersTimeout, requestTimeout]).toEqual([15_000, 60_000]);
  });

  it.each([
    ['whose header never ends', () => 'GET /api/v1/status HTTP/1.1\r\nHost: x\r\n'],
    [
      'whose body never ends',
      () =>
        `${createHeader('POST', `${client.store}/cards`, 'Content-Type: application/json', 'Content-Length: 30')}{"card"`,
    ],
  ])('%s gets 408 as JSON', async (_name, bytes) => {
    const response = await exchange(strictService.baseUrl, bytes());
    expect(response).toMatch(
      /^HTTP\/1\.1 408 [^]*application\/json[^]*"code":"request_timeout"[^]*"resolution":/,
    );
    expect(response.match(/HTTP\/1\.1/g)).toHaveLength(1);
  });

  it('gets no 408 after another response', async () => {
    const response = await exchange(
      strictService.baseUrl,
      `POST ${client.store}/cards HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 30\r\n\r\n{`,
    );
    expect(response).toMatch(/^HTTP\/1\.1 401 /);
    expect(response.match(/HTTP\/1\.1/g)).toHaveLength(1);
  });

  it.each([
    ['never ends', 'GET /api/v1/status HTTP/1.1\r\nHost:'],
    ['is not HTTP', 'nonsense\r\n\r\n'],
  ])(
    'that %s closes the connection, while the write before it is still committed',
    async (_name, rest) => {
      const events = async () => (await strictService.history()).length;
      const before = await events();
      const body = JSON.stringify({ card: { name: 'Tea' } });
      const { query } = strictService.database;
      await query('begin');
      await query('lock table es.events in access exclusive mode');
      const countWaiting = async () =>
        (await query('select 1 from pg_locks where not granted')).rowCount;
      async function* bytes() {
        const head = ['Content-Type: application/json', `Content-Length: ${body.length}`];
        yield createHeader('POST', `${client.store}/cards`, ...head) + body;
        await eventually(countWaiting, (waiting) => waiting === 1);
        yield rest;
      }
      const response = await exchange(strictService.baseUrl, bytes());
      await strictService.database.query('commit');
      expect(response).toBe('');
      await eventually(events, (now) => now === before + 1);
    },
  );
});

describe('the response to an unreadable request', () => {
  const DEPRECATION = '2040-01-01T00:00:00Z';
  let announcedService: LocalService;

  beforeAll(async () => {
    announcedService = await startService({
      RATE_LIMIT_PER_MINUTE: '5',
      API_V1_DEPRECATION_DATE: DEPRECATION,
      API_V1_SUNSET_DATE: '2041-01-01T00:00:00Z',
    });
    Object.assign(announcedService.app.getHttpServer(), {
      headersTimeout: 300,
      requestTimeout: 300,
    });
  });
  afterAll(() => announcedService.stop());

  it('counts against the rate limit of the IP address and has the headers of limit and deprecation', async () => {
    const unreadableRequests = [
      ['400', 'nonsense\r\n\r\n'],
      ['431', `GET /api/v1/status HTTP/1.1\r\nHost: x\r\nX-Long: ${'x'.repeat(20_000)}\r\n\r\n`],
      ['408', 'GET /api/v1/status HTTP/1.1\r\nHost: x\r\n'],
    ] as const;
    for (const [i, [status, bytes]] of unreadableRequests.entries()) {
      const response = await exchange(announcedService.baseUrl, bytes);
      const lines = response.toLowerCase().split('\r\n');
      expect(lines[0]).toContain(`http/1.1 ${status} `);
      expect(lines).toEqual(
        expect.arrayContaining([
          'ratelimit-limit: 5',
          `ratelimit-remaining: ${4 - i}`,
          expect.stringMatching(/^ratelimit-reset: ([1-9]|[1-5]\d|60)$/),
          'ratelimit-policy: 5;w=60',
          `deprecation: @${Date.parse(DEPRECATION) / 1000}`,
          'sunset: tue, 01 jan 2041 00:00:00 gmt',
          expect.stringMatching(/^link: <.*\/docs\/versioning>; rel="deprecation"/),
        ]),
      );
    }
    const { headers } = await fetch(`${announcedService.baseUrl}/api/v1/status`);
    expect(headers.get('ratelimit-remaining')).toBe('1');
  });
});

describe('a connection without a request', () => {
  it('does not delay the shutdown of the api', async () => {
    const program = startProgram(
      'dist/apps/api/main.js',
      createTestEnvironment(service.database.url, { LOG_LEVEL: 'info' }),
    );
    const listening = /listening on http:\S+:(\d+)/;
    const output = await eventually(program.output, (text) => listening.test(text));
    const socket = connect(Number(listening.exec(output)?.[1]), '127.0.0.1');
    await once(socket, 'connect');
    const close = once(socket, 'close');
    await program.kill('SIGTERM');
    await close;
    expect(program.output()).not.toContain('shutdown has not finished in time');
  });
});

describe('the access log', () => {
  it('has a line with the request id for all but health checks, and neither tokens nor queries', async () => {
    const database = await createTestDatabase();
    const owner = await startService({}, database);
    const { token, store: path } = await owner.newStore();
    const program = startProgram(
      'dist/apps/api/main.js',
      createTestEnvironment(database.url, { LOG_LEVEL: 'info' }),
    );
    const listening = /listening on (http:\S+)/;
    const output = await eventually(program.output, (text) => listening.test(text));
    const client = new Client(listening.exec(output)?.[1] ?? '', 1, token);

    const creation = await client.send(
      'POST',
      `${path}/cards?secret=1`,
      { card: { name: 'Tea' } },
      { 'x-request-id': 'till-1' },
    );
    expect(creation.status).toBe(201);
    const failure = await client.send<Failure>('GET', '/api/v1/nothing?secret=1', undefined, {
      'x-request-id': 'till-2',
    });
    expect(failure.body.request_id).toBe('till-2');
    await fetch(`${client.baseUrl}/health/live`);
    await fetch(`${client.baseUrl}/nowhere`);

    const lines = await eventually(program.output, (text) => text.includes('/nowhere'));
    expect(lines).toMatch(
      new RegExp(
        `POST ${path}/cards 201 request_id=till-1 status=201 milliseconds=[\\d.]+ ip=127\\.0\\.0\\.1 token_id=\\d+`,
      ),
    );
    expect(lines).toMatch(/GET \/api\/v1\/nothing 404 request_id=till-2 .*token_id=\d+/);
    expect(lines).toMatch(
      /GET \/nowhere 404 request_id=[\da-f-]{36} status=404 milliseconds=[\d.]+ ip=127\.0\.0\.1 bytes=\d+ database_ms=[\d.]+\n/,
    );
    expect(lines).not.toContain('secret');
    expect(lines).not.toContain('/health');
    expect(lines).not.toContain(token);
    expect((await owner.history()).at(-1)?.meta.requestId).toBe('till-1');
    await program.kill('SIGTERM');
    await owner.stop();
  });
});
