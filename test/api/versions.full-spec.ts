import { describe, expect, it } from '@jest/globals';
import { readConfig } from '#configuration/config.js';
import { ConfigError } from '#platform/kernel/config-error.js';
import { runAtTime } from '../support/services/clock.js';
import { expectFailure, useService } from '../support/http/contract.js';
import {
  createTestDatabase,
  createTestEnvironment,
  type TestDatabase,
} from '../support/database/database.js';
import { runNode } from '../support/services/program.js';
import { announcedDatabase } from '../support/services/retirement.js';
import { Client, startService, type ApiResponse } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

type Versioning = { current: string; supported: string[]; deprecated: string[] };

const PUBLIC_URL = 'https://cards.example';
const STATUS = '/api/v1/status';
const DEPRECATED = new Date('2025-01-01T00:00:00Z');
const SUNSET = new Date('2090-06-30T12:00:00Z');
/** When the deprecation lies ahead. */
const BEFORE = '2024-12-31T23:59:59.999Z';
const DAY_MS = 24 * 3_600_000;
const OVER = new Date('2026-02-01T00:00:00Z');

const current = useService({ PUBLIC_URL });
const deprecated = useService({
  PUBLIC_URL,
  API_V1_DEPRECATION_DATE: DEPRECATED.toISOString(),
  API_V1_SUNSET_DATE: SUNSET.toISOString(),
});
// For the test that moves its clock, and with it the windows of its callers.
const ending = useService({
  PUBLIC_URL,
  API_V1_DEPRECATION_DATE: DEPRECATED.toISOString(),
  API_V1_SUNSET_DATE: SUNSET.toISOString(),
});
const retired = useService(
  {
    PUBLIC_URL,
    API_V1_DEPRECATION_DATE: DEPRECATED.toISOString(),
    API_V1_SUNSET_DATE: OVER.toISOString(),
    RATE_LIMIT_PER_MINUTE: '3',
  },
  () => announcedDatabase(DEPRECATED, OVER),
);

/** Reads the message of an api that does not start. */
function readStartFailure(database: TestDatabase, settings: NodeJS.ProcessEnv): string {
  const { status, output } = runNode(
    ['dist/apps/api/main.js'],
    createTestEnvironment(database.url, settings),
  );
  expect(status).toBe(78);
  return output;
}

const linksOf = ({ headers }: ApiResponse) => (headers.get('link') ?? '').split(/,\s*(?=<)/);
const policyOf = (response: ApiResponse) =>
  linksOf(response)
    .map((link) => /^<([^>]+)>.*;\s*rel="deprecation"/.exec(link)?.[1])
    .find((target) => target !== undefined);

/** Success and failures of several kinds. */
async function requestEach(service: typeof current): Promise<ApiResponse[]> {
  const store = await service.newStore();
  return [
    await service.anonymous.get(STATUS),
    await store.get('/api/v1/accounts'),
    await store.post(`${store.store}/cards`, { card: { name: 'Coffee' } }),
    await service.anonymous.get('/api/v1/accounts'),
    await store.get('/api/v1/nothing'),
    await store.get(`${store.store}/cards/999999999`),
    await store.post(`${store.store}/cards`, '{'),
    await store.post(`${store.store}/cards`, {}),
    await store.get('/api/v1/accounts/%E0%A4%A'),
    await store.send('PUT', '/api/v1/accounts'),
  ];
}

describe('a version', () => {
  it('VER-01 Without a date of retirement no response has `Deprecation`, `Sunset` or a `Link` with `rel="deprecation"`', async () => {
    for (const response of await requestEach(current)) {
      expect(response.headers.get('deprecation')).toBeNull();
      expect(response.headers.get('sunset')).toBeNull();
      expect(policyOf(response)).toBeUndefined();
    }
  });

  it('VER-02 With a deprecation date every response has `Deprecation: @seconds` (RFC 9745), errors included', async () => {
    const responses = await requestEach(deprecated);
    expect(responses.map(({ status }) => status)).toEqual([
      200, 200, 201, 401, 404, 404, 400, 422, 404, 405,
    ]);
    for (const { headers } of responses) {
      expect(headers.get('deprecation')).toBe(`@${DEPRECATED.getTime() / 1000}`);
    }
    const store = await deprecated.newStore();
    const ahead = await runAtTime(BEFORE, () => store.get(STATUS));
    expect(ahead.headers.get('deprecation')).toBe(`@${DEPRECATED.getTime() / 1000}`);
  });

  it('VER-03 With a sunset date every response has `Sunset` as an HTTP date (RFC 8594)', async () => {
    for (const { headers } of await requestEach(deprecated)) {
      expect(headers.get('sunset')).toBe('Fri, 30 Jun 2090 12:00:00 GMT');
    }
  });

  it('VER-04 `Deprecation` and `Sunset` come with a `Link` with `rel="deprecation"` to the policy, which is served', async () => {
    const targets = new Set((await requestEach(deprecated)).map(policyOf));
    expect(targets.size).toBe(1);
    const [policy = ''] = targets;
    expect(policy?.startsWith(`${PUBLIC_URL}/`)).toBe(true);
    const { baseUrl } = deprecated.running;
    const page = await new Client(baseUrl, 0, null).get(new URL(policy).pathname);
    expect(page.status).toBe(200);
  });

  it('VER-05 Until the sunset date everything else works as before', async () => {
    const store = await deprecated.newStore();
    const { path, rewards } = await enrol(store, { rewards: [2] });
    expect((await store.stamp(path, 2)).status).toBe(200);
    const redeem = { reward_id: rewards[0]?.id };
    expect((await store.post(`${path}/redeem`, redeem)).status).toBe(200);
  });

  it('VER-06 From the deprecation date on the status lists v1 under `versioning.deprecated`', async () => {
    const store = await deprecated.newStore();
    const sendRequest = () => store.get<{ versioning: Versioning }>(STATUS);
    const ahead = await runAtTime(BEFORE, sendRequest);
    expect(ahead.body.versioning).toMatchObject({ supported: ['v1'], deprecated: [] });
    const { body } = await deprecated.anonymous.get<{ versioning: Versioning }>(STATUS);
    expect(body.versioning).toMatchObject({ current: 'v1', deprecated: ['v1'] });
  });

  it('VER-07 After the sunset date every endpoint returns 410 `version_sunset`', async () => {
    for (const response of await requestEach(retired))
      expectFailure(response, 410, 'version_sunset');
    const sendRequest = () => ending.anonymous.get(STATUS);
    expect((await runAtTime('2090-06-30T11:59:59.999Z', sendRequest)).status).toBe(200);
    expectFailure(await runAtTime(SUNSET.toISOString(), sendRequest), 410, 'version_sunset');
  });

  it('VER-08 A 410 `version_sunset` still has `Deprecation`, `Sunset` and the `Link`', async () => {
    for (const response of await requestEach(retired)) {
      expect(response.headers.get('deprecation')).toBe(`@${DEPRECATED.getTime() / 1000}`);
      expect(response.headers.get('sunset')).toBe(OVER.toUTCString());
      expect(policyOf(response)).toBe(`${PUBLIC_URL}/docs/versioning`);
    }
  });

  it('VER-09 A 410 `version_sunset` takes precedence over the limit, the token and everything else; only preflights still work', async () => {
    const store = await retired.newStore();
    for (let i = 0; i < 5; i++) {
      expectFailure(await store.get('/api/v1/accounts'), 410, 'version_sunset');
      expectFailure(await retired.anonymous.get(store.store), 410, 'version_sunset');
    }
    const text = { 'content-type': 'text/plain' };
    const idle = { 'idempotency-key': '' };
    for (const response of [
      await store.send('POST', `${store.store}/cards`, 'x', text),
      await store.send('POST', `${store.store}/cards`, 'x'.repeat(2_000_000), idle),
      await store.send('OPTIONS', '/api/v1/accounts'),
      await store.get('/api/v1/accounts/999999999'),
      await retired.anonymous.get('/api/v1'),
      await retired.anonymous.get('/api/v1/nothing/here'),
    ]) {
      expectFailure(response, 410, 'version_sunset');
    }
  });

  it('VER-10 After the sunset date the status returns 410 too, and its body has `versioning`', async () => {
    const response = await retired.anonymous.get<{ versioning: Versioning }>(STATUS);
    expectFailure(response, 410, 'version_sunset');
    expect(response.body.versioning).toMatchObject({ deprecated: ['v1'] });
    expect(response.body.versioning.supported).not.toContain('v1');
  });

  it('VER-11 Deprecation and sunset dates less than 12 months apart, or a sunset date alone, are rejected at startup', () => {
    const read = (deprecation: string, sunset: string) => () =>
      readConfig(
        createTestEnvironment('postgres://localhost/test', {
          API_V1_DEPRECATION_DATE: deprecation,
          API_V1_SUNSET_DATE: sunset,
        }),
      );
    expect(read('2030-01-01', '2030-12-31')).toThrow(ConfigError);
    expect(read('2030-01-01', '2029-01-01')).toThrow(ConfigError);
    expect(read('', '2030-01-01')).toThrow(ConfigError);
    expect(read('2030-01-01', '2031-01-01')).not.toThrow();
    expect(read('2030-01-01', '')).not.toThrow();
  });

  it('VER-13 The twelve months until the sunset count from the first start with a deprecation date, which the database keeps', async () => {
    const database = await createTestDatabase();
    const inDays = (days: number) => new Date(Date.now() + days * DAY_MS).toISOString();
    const settings = (sunset: string) => ({
      API_V1_DEPRECATION_DATE: '2020-01-01',
      API_V1_SUNSET_DATE: sunset,
    });
    expect(readStartFailure(database, settings('2021-01-01'))).toMatch(
      /^API_V1_SUNSET_DATE: must be \d{4}-\d\d-\d\d or later, because this start is the first to announce .*\n$/,
    );
    const first = await startService(settings(inDays(367)), database);
    expect(readStartFailure(database, { ...first.environment, ...settings(inDays(364)) })).toMatch(
      /twelve months after the retirement of v1 was announced on /,
    );
    const shared = { ...database, close: async () => undefined };
    const later = await startService(settings(inDays(500)), shared);
    await later.stop();
    await first.stop();
  });

  it('VER-14 Once a retirement was announced, a start without its dates is rejected until the announcement is withdrawn', async () => {
    const database = await announcedDatabase(DEPRECATED, SUNSET);
    expect(readStartFailure(database, {})).toBe(
      'API_V1_DEPRECATION_DATE: v1 was announced on 2025-01-01 as deprecated from 2025-01-01 and retired from 2090-06-30T12:00:00Z, so set these dates again, or withdraw them with inkpad retirement:withdraw.\n',
    );
    await database.close();
  });

  it("VER-12 A deprecation `Link` and a list's `next` link can appear together", async () => {
    const store = await deprecated.newStore();
    for (const name of ['Coffee', 'Tea'])
      await store.post(`${store.store}/cards`, { card: { name } });
    const page = await store.get(`${store.store}/cards?limit=1`);
    expect(policyOf(page)).toBeDefined();
    expect(linksOf(page).filter((link) => /;\s*rel="next"/.test(link))).toHaveLength(1);
    const last = await store.get(`${store.store}/cards?limit=2`);
    expect(policyOf(last)).toBeDefined();
    expect(linksOf(last)).toHaveLength(1);
  });
});
