import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { exchange } from '../support/http/raw-request.js';
import { sharedService } from '../support/services/shared-service.js';
import type { Client, Service } from '../support/services/service.js';

let service: Service;
let store: Client;
let otherClient: Client;
let routes: { method: string; path: string }[];

beforeAll(async () => {
  service = await sharedService();
  store = await service.newStore();
  otherClient = await service.newStore();
  const document = (
    await store.get<{ paths: Record<string, Record<string, unknown>> }>('/openapi.json')
  ).body;
  routes = Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.keys(operations).map((method) => ({
      method: method.toUpperCase(),
      path: path.replace('{account_id}', String(otherClient.accountId)).replaceAll(/\{\w+\}/g, '1'),
    })),
  );
});
afterAll(() => service.stop());

const STATUS = '/api/v1/status';

function selectOnePerPath(all: typeof routes): typeof routes {
  return [...new Map(all.map((route) => [route.path, route])).values()];
}

/** Lists many ways to write the same path, or nearly the same. */
const listSpellings = (path: string): string[] => [
  path,
  `${path}/`,
  `${path}//`,
  `${path}/.`,
  `${path}?`,
  `${path}#x`,
  `${path};x=1`,
  `${path}%20`,
  `${path}%00`,
  `${path}%2f`,
  `/${path}`,
  path.replace('/api', '//api'),
  path.replace('/v1', '//v1'),
  path.replace('/v1', '/v1/../v1'),
  path.replace('/v1', '/./v1'),
  path.replace('/v1', '/%2e/v1'),
  path.replace('/v1', '/x/%2e%2e/v1'),
  path.replace('/v1', '%2fv1'),
  path.replace('/v1', '\\v1'),
  path.replace('/v1', '/V1'),
  path.replace('/api', '/API'),
  path.replace('/api', '/%61pi'),
  path.replace('/api', '/%61%70%69'),
  path.replace('v1', '%761'),
  path.replace('v1', '%2576%31'),
  path.replace('accounts', '%61ccounts'),
  path.replace('accounts', 'ACCOUNTS'),
  path.replace('accounts', 'status/../accounts'),
  path.replace('accounts', 'status%2f..%2faccounts'),
  path.replace('/api', '/health/../api'),
  path.replace('/api', '/health/%2e%2e/api'),
  path.replace('/api', '/docs/..;/api'),
  `http://cards.example${path}`,
  `HTTPS://cards.example${path}`,
  `http://cards.example/health${path}`,
  `//health${path}`,
  `${path}/%E0%A4%A`,
];

async function requestStatus(
  method: string,
  target: string,
  token: string | null,
): Promise<number> {
  const body = method === 'GET' ? '' : '{}';
  const lines = [
    `${method} ${target} HTTP/1.1`,
    'Host: cards.example',
    'Connection: close',
    ...(token === null ? [] : [`Authorization: Bearer ${token}`]),
    ...(body === '' ? [] : ['Content-Type: application/json', `Content-Length: ${body.length}`]),
  ];
  const response = await exchange(service.baseUrl, `${lines.join('\r\n')}\r\n\r\n${body}`);
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(response)?.[1]);
  expect([target, response.includes('"error"') || response.includes('"status":"ok"')]).toEqual([
    target,
    true,
  ]);
  return status;
}

describe('the request guard', () => {
  it('is tested with more than 20 routes, all of them under /api/v1', () => {
    expect(routes.length).toBeGreaterThan(20);
    expect(routes.filter(({ path }) => !path.startsWith('/api/v1/'))).toEqual([]);
  });

  it('lets no request without a token reach a route, however its path is written', async () => {
    for (const { method, path } of selectOnePerPath(routes)) {
      if (path === STATUS) continue;
      const targets = listSpellings(path);
      const statuses = await Promise.all(
        targets.map((target) => requestStatus(method, target, null)),
      );
      for (const [i, status] of statuses.entries()) {
        expect([method, targets[i], [400, 401, 404].includes(status) || status]).toEqual([
          method,
          targets[i],
          true,
        ]);
      }
      expect(await requestStatus(method, path.replace('/api', '/%61pi'), null)).toBe(401);
      expect(await requestStatus(method, `http://cards.example${path}`, null)).toBe(401);
    }
  });

  it('lets no token reach the store of another user, however the path is written', async () => {
    const token = store.token;
    for (const { method, path } of selectOnePerPath(routes)) {
      if (!path.startsWith(`/api/v1/accounts/${otherClient.accountId}`)) continue;
      const targets = listSpellings(path);
      const statuses = await Promise.all(
        targets.map((target) => requestStatus(method, target, token)),
      );
      for (const [i, status] of statuses.entries()) {
        expect([method, targets[i], [400, 404, 405].includes(status) || status]).toEqual([
          method,
          targets[i],
          true,
        ]);
      }
      const id = String(otherClient.accountId);
      const escaped = [...id].map((digit) => `%3${digit}`).join('');
      for (const spelling of [escaped, `0${id}`, `+${id}`, `${id}.0`, `${id}%20`]) {
        const target = path.replace(`accounts/${id}`, `accounts/${spelling}`);
        expect([method, target, await requestStatus(method, target, token)]).toEqual([
          method,
          target,
          404,
        ]);
      }
    }
  });
});
