import { afterEach, describe, expect, it } from '@jest/globals';
import { eventually } from './support/eventually.js';
import { Client, startService, type Service } from './support/service.js';

type Versioning = { deprecated: string[]; supported: string[] } & Record<string, string>;
type Body = { code: string; versioning: Versioning };

const DAY = 24 * 60 * 60 * 1000;
const daysFromNow = (days: number) => new Date(Date.now() + days * DAY);
const LINK = '<https://cards.example/docs/versioning>; rel="deprecation"; type="text/html"';

let service: Service;
let store: Client;
let anonymous: Client;

async function start(deprecated: Date, sunset?: Date): Promise<void> {
  service = await startService({
    API_V1_DEPRECATION_DATE: deprecated.toISOString(),
    ...(sunset && { API_V1_SUNSET_DATE: sunset.toISOString() }),
  });
  store = await service.newStore();
  anonymous = new Client(service.baseUrl, store.accountId, null);
}

afterEach(() => service.stop());

const seconds = (moment: Date) => `@${Math.floor(moment.getTime() / 1000)}`;

describe('a version that will be deprecated', () => {
  it('says so on every answer, and is not yet', async () => {
    const [deprecated, sunset] = [daysFromNow(30), daysFromNow(30 + 400)];
    await start(deprecated, sunset);
    const answers = await Promise.all([
      store.get('/api/v1/accounts'),
      anonymous.get('/api/v1/accounts'),
      store.get('/api/v1/nothing'),
      store.get('/api/v1/accounts/%E0%A4%A'),
      store.send('PUT', '/api/v1/accounts'),
      store.post(`${store.store}/cards`, '{'),
      store.post(`${store.store}/cards`, {}),
      anonymous.get('/api/v1/status'),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([200, 401, 404, 404, 405, 400, 422, 200]);
    for (const { headers } of answers) {
      expect(headers.get('deprecation')).toBe(seconds(deprecated));
      expect(headers.get('sunset')).toBe(sunset.toUTCString());
      expect(headers.get('link')).toBe(LINK);
      expect(headers.has('ratelimit-limit')).toBe(true);
    }
    const { versioning } = (await anonymous.get<Body>('/api/v1/status')).body;
    expect(versioning).toMatchObject({
      current: 'v1',
      supported: ['v1'],
      deprecated: [],
      deprecation_date: deprecated.toISOString(),
      sunset_date: sunset.toISOString(),
    });
    for (const path of ['/docs', '/health/live', '/nowhere']) {
      expect((await anonymous.get(path)).headers.has('deprecation')).toBe(false);
    }
  });
});

describe('a version that is deprecated', () => {
  it('says so, without an end as long as none is known', async () => {
    await start(daysFromNow(-30));
    const { headers, body } = await anonymous.get<Body>('/api/v1/status');
    expect(headers.has('deprecation')).toBe(true);
    expect(headers.has('sunset')).toBe(false);
    expect(body.versioning.deprecated).toEqual(['v1']);
    expect(body.versioning).not.toHaveProperty('sunset_date');
  });

  it('names the page that explains it, which is there', async () => {
    await start(daysFromNow(-30), daysFromNow(340));
    const { versioning } = (await anonymous.get<Body>('/api/v1/status')).body;
    const url = new URL(versioning['policy_url'] ?? '');
    expect(url.origin).toBe('https://cards.example');
    const page = await anonymous.get(url.pathname);
    expect(page.status).toBe(200);
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(page.headers.get('content-security-policy')).toMatch(/default-src 'none'.*sha256-/);
    expect(page.text).toContain('deprecated since');
    expect(page.text).toContain(versioning['sunset_date']);
  });
});

describe('a version that is retired', () => {
  it('answers everything with 410 and nothing else', async () => {
    const [deprecated, sunset] = [daysFromNow(-400), daysFromNow(-1)];
    await start(deprecated, sunset);
    const answers = await Promise.all([
      store.get<Body>('/api/v1/accounts'),
      anonymous.get<Body>('/api/v1/accounts'),
      anonymous.get<Body>('/api/v1/status'),
      anonymous.get<Body>('/api/v1'),
      anonymous.get<Body>('/api/v1/nothing/here'),
      anonymous.get<Body>('/api/v1/accounts/%E0%A4%A'),
      store.send<Body>('PUT', '/api/v1/accounts'),
      store.send<Body>('OPTIONS', '/api/v1/accounts'),
      store.post<Body>(`${store.store}/cards`, '{'),
      store.get<Body>('/api/v1/accounts/999999'),
    ]);
    for (const { status, headers, body } of answers) {
      expect([status, body.code]).toEqual([410, 'version_sunset']);
      expect(headers.get('deprecation')).toBe(seconds(deprecated));
      expect(headers.get('sunset')).toBe(sunset.toUTCString());
      expect(headers.get('link')).toBe(LINK);
      expect(headers.get('x-request-id')).toMatch(/^[\da-f-]{36}$/);
      expect(headers.get('ratelimit-policy')).toBe('100000;w=60');
      for (const name of ['limit', 'remaining', 'reset']) {
        expect(headers.get(`ratelimit-${name}`)).toMatch(/^\d+$/);
      }
      expect(body.versioning).toMatchObject({ supported: [], deprecated: ['v1'] });
    }
    const page = await anonymous.get('/docs/versioning');
    expect([page.status, page.text.includes('retired since')]).toEqual([200, true]);
  });

  it('answers so before the limit, and without a database', async () => {
    service = await startService({
      API_V1_DEPRECATION_DATE: '2020-01-01',
      API_V1_SUNSET_DATE: '2021-01-01',
      RATE_LIMIT_PER_MINUTE: '1',
    });
    anonymous = new Client(service.baseUrl, 1, 'ink_guess');
    const asked = [];
    for (let i = 0; i < 3; i++) asked.push(await anonymous.get('/api/v1/accounts'));
    expect(asked.map(({ status }) => status)).toEqual([410, 410, 410]);
    expect(asked.at(-1)?.headers.get('ratelimit-remaining')).toBe('0');
  });

  it('becomes so while it runs', async () => {
    await start(daysFromNow(-400), new Date(Date.now() + 2_000));
    expect((await store.get('/api/v1/accounts')).status).toBe(200);
    await eventually(
      () => store.get('/api/v1/accounts'),
      ({ status }) => status === 410,
    );
  });
});
