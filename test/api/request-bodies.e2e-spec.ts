import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { connect } from 'node:net';
import { Logger } from '@nestjs/common';
import { appleWorld, type AppleWorld } from '../support/emulators/apple/world.js';
import { PASS_TYPE } from '../support/emulators/apple/certificates.mjs';
import { startService, type Client, type Service } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

const UUID = '00000000-0000-4000-8000-000000000000';
const FORM = 'application/x-www-form-urlencoded';
const JSON_TYPE = 'application/json';

let service: Service;
let store: Client;

beforeAll(async () => {
  service = await startService({ RATE_LIMIT_PER_MINUTE: '100000' });
  store = await service.newStore();
});
afterAll(() => service.stop());

type RequestParts = { method: string; path: string; type: string; body: string; origin?: string };

const send = (
  { method, path, type, body, origin = 'https://cards.example' }: RequestParts,
  base = service,
) =>
  fetch(base.baseUrl + path, {
    method,
    headers: { 'content-type': type, origin },
    body,
    redirect: 'manual',
  });

/** Sends the header of a request with a body, and no body. @returns the status of the response */
function sendHeader(method: string, path: string, type: string, port: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), '127.0.0.1', () => {
      socket.write(
        `${method} ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: ${type}\r\nContent-Length: 16000\r\n\r\n`,
      );
    });
    socket.once('data', (data) => {
      resolve(Number(/^HTTP\/1.1 (\d+)/.exec(data.toString('latin1'))?.[1]));
      socket.destroy();
    });
    socket.once('error', reject);
    socket.once('close', () => reject(new Error('the connection was closed')));
  });
}

const getPort = ({ baseUrl }: Service) => new URL(baseUrl).port;

describe('a request body', () => {
  const routes: [string, string, string][] = [
    ['POST', '/join/nowhere', FORM],
    ['POST', '/app/password/forgot', FORM],
    ['POST', '/app/password/reset', FORM],
    ['POST', `/app/invitations/${UUID}`, FORM],
    ['POST', `/passes/${UUID}/push`, JSON_TYPE],
    ['DELETE', `/passes/${UUID}/push`, JSON_TYPE],
  ];

  // They carry a form that was kept while its user signs in.
  const carriers: [string, string, string][] = [
    ['POST', '/app/sign-in', FORM],
    ['POST', '/app/sign-in/code', FORM],
  ];

  it.each([
    ...routes.map((route) => [...route, 16] as const),
    ...carriers.map((route) => [...route, 64] as const),
  ])('of %s %s without a token (%s) gets 413 beyond %i KiB', async (method, path, type, kib) => {
    const limit = kib * 1024;
    const createBody = (length: number) =>
      type === FORM
        ? `a=${'x'.repeat(length - 2)}`
        : '['.repeat(length / 2) + ']'.repeat(length / 2);
    const statuses = [];
    for (const length of [limit, limit + 2, 1024 * 1024]) {
      const { status } = await send({ method, path, type, body: createBody(length) });
      statuses.push(status);
    }
    expect(statuses.slice(1)).toEqual([413, 413]);
    expect(statuses[0]).toBeGreaterThanOrEqual(200);
    expect([413, 500]).not.toContain(statuses[0]);
  });

  it('gets 413 for its Content-Length before it is read', async () => {
    const socket = connect(Number(getPort(service)), '127.0.0.1');
    socket.write(
      `POST /passes/${UUID}/push HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 16385\r\n\r\n[`,
    );
    const response = await new Promise<string>((resolve) => {
      socket.once('data', (data) => resolve(data.toString('latin1')));
    });
    socket.destroy();
    expect(response).toMatch(/^HTTP\/1.1 413/);
  });

  it.each([
    ['POST', '/wallet/google/callback', JSON_TYPE],
    ['POST', `/wallet/apple/v1/devices/d/registrations/p/${UUID}`, JSON_TYPE],
    ['DELETE', `/wallet/apple/v1/devices/d/registrations/p/${UUID}`, JSON_TYPE],
    ['POST', '/wallet/apple/v1/log', JSON_TYPE],
    ['POST', `/sms/status/${UUID}`, FORM],
    ['POST', '/nowhere', JSON_TYPE],
    ['PUT', '/nowhere', 'image/png'],
    ['POST', '/nowhere', FORM],
    ['POST', '/nowhere', 'text/plain'],
    ['PATCH', '/app/nowhere', FORM],
  ])('of %s %s, which does not exist, is not read and gets 404', async (method, path, type) => {
    expect(await sendHeader(method, path, type, getPort(service))).toBe(404);
  });

  it('of an API request without a token is not read and gets 401', async () => {
    for (const path of ['/api/v1/accounts', '/api/v1/nowhere', `${store.store}/cards`]) {
      expect(await sendHeader('POST', path, JSON_TYPE, getPort(service))).toBe(401);
    }
  });

  it('from a client with a token may have up to 1 MiB', async () => {
    const name = 'x'.repeat(100);
    const padding = ' '.repeat(900 * 1024);
    const body = JSON.stringify({ location: { name, address: 'Main street 1' } }) + padding;
    const response = await store.send('POST', `${store.store}/locations`, Buffer.from(body), {
      'content-type': JSON_TYPE,
    });
    expect(response.status).toBe(201);
    const longer = Buffer.from(body + ' '.repeat(200 * 1024));
    const rejection = await store.send('POST', `${store.store}/locations`, longer, {
      'content-type': JSON_TYPE,
    });
    expect(rejection.status).toBe(413);
  });
});

describe('a disabled Apple Wallet', () => {
  it.each(['GET', 'HEAD'])('responds 404 to %s on its routes', async (method) => {
    for (const path of ['passes/p/s', 'devices/d/registrations/p']) {
      const { status } = await fetch(`${service.baseUrl}/wallet/apple/v1/${path}`, { method });
      expect(status).toBe(404);
    }
  });
});

describe('log messages of phones', () => {
  let world: AppleWorld;
  let apple: Service;

  beforeAll(async () => {
    world = await appleWorld();
    apple = await startService(world.settings);
  });
  afterAll(async () => {
    await apple.stop();
    await world.apns.stop();
  });

  it('are logged only when they name a registered device or pass', async () => {
    const client = await apple.newStore();
    const enrolment = await enrol(client);
    const phone = world.phone(apple.baseUrl);
    const serial = await phone.add(enrolment.customerCard.apple_wallet_url);
    const otherHolder = await enrol(client);
    const stranger = otherHolder.customerCard.apple_wallet_url.split('/').at(-2) ?? '';
    const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => {});
    try {
      const logs = [
        'nothing that anybody knows',
        `Get pass task (pass type ${PASS_TYPE}, serial number ${serial}, x) FIRST`,
        `Get pass task (pass type ${PASS_TYPE}, serial number ${serial.toUpperCase()}, x) SECOND`,
        `Get pass task (pass type ${PASS_TYPE}, serial number ${stranger}, x) never registered`,
        `Get pass task (pass type ${PASS_TYPE}, serial number ${UUID}, x) unknown`,
        `Register task (for device ${phone.library}, pass type ${PASS_TYPE}) THIRD`,
        `Register task (for device ${'f'.repeat(32)}, pass type ${PASS_TYPE}) unknown`,
        7,
      ];
      const body = JSON.stringify({ logs });
      const path = '/wallet/apple/v1/log';
      const { status } = await send({ method: 'POST', path, type: JSON_TYPE, body }, apple);
      expect(status).toBe(200);
      const lines = warn.mock.calls.map(([line]) => String(line));
      expect(lines.map((line) => /[A-Z]{5,6}$/.exec(line)?.[0])).toEqual([
        'FIRST',
        'SECOND',
        'THIRD',
      ]);
      expect(lines.join()).not.toContain(serial);
      for (const odd of ['{}', '[]', '{"logs":{}}', '"x"']) {
        const sent = await send({ method: 'POST', path, type: JSON_TYPE, body: odd }, apple);
        expect(sent.status).toBe(200);
      }
    } finally {
      warn.mockRestore();
    }
  });
});
