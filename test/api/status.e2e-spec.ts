import { describe, expect, it } from '@jest/globals';
import { Client } from '../support/services/service.js';
import { useService, type ContractClient } from '../support/http/contract.js';

type Status = {
  status: string;
  api_version: string;
  authentication: string;
  documentation_url: string;
  developer_portal_url: string;
  openapi_url: string;
  rate_limit: { limit: number; window_seconds: number; scope: string };
  versioning: {
    current: string;
    supported: string[];
    deprecated: string[];
    policy_url: string;
    signalling: string;
  };
};

const PUBLIC_URL = 'https://cards.example';
const STATUS = '/api/v1/status';

const service = useService({ PUBLIC_URL, RATE_LIMIT_PER_MINUTE: '5000' });
const unset = useService({ RATE_LIMIT_PER_MINUTE: '' });

const show = async (client: ContractClient = service.anonymous) =>
  (await client.get<Status>(STATUS)).body;

/** Asks the service itself for what it announces under its public address. */
async function expectServed(url: string): Promise<void> {
  expect(url.startsWith(`${PUBLIC_URL}/`)).toBe(true);
  const { baseUrl } = service.running;
  const { status } = await new Client(baseUrl, 0, null).get(url.slice(PUBLIC_URL.length));
  expect([url, status]).toEqual([url, 200]);
}

describe('the status', () => {
  it('STATUS-01 The status is 200 without a token', async () => {
    expect((await service.anonymous.get(STATUS)).status).toBe(200);
  });

  it('STATUS-02 The status ignores a bad token', async () => {
    for (const authorization of ['Bearer ink_nonsense', 'Basic abc', 'x']) {
      const response = await service.anonymous.send('GET', STATUS, undefined, { authorization });
      expect(response.status).toBe(200);
    }
  });

  it('STATUS-03 The status has exactly the documented fields', async () => {
    const body = await show();
    expect([body.status, body.api_version]).toEqual(['ok', 'v1']);
    expect(Object.keys(body).sort()).toEqual([
      'api_version',
      'authentication',
      'developer_portal_url',
      'documentation_url',
      'openapi_url',
      'rate_limit',
      'status',
      'versioning',
    ]);
    expect(Object.keys(body.rate_limit).sort()).toEqual(['limit', 'scope', 'window_seconds']);
    expect(Object.keys(body.versioning).sort()).toEqual([
      'current',
      'deprecated',
      'policy_url',
      'signalling',
      'supported',
    ]);
  });

  it('STATUS-04 `authentication` names the header to send', async () => {
    expect((await show()).authentication).toMatch(/Authorization.*Bearer/);
  });

  it('STATUS-05 The URLs in the status are absolute, and each one is served', async () => {
    const body = await show();
    for (const url of [body.documentation_url, body.developer_portal_url, body.openapi_url]) {
      await expectServed(url);
    }
  });

  it('STATUS-06 `rate_limit` shows the configured limit', async () => {
    const { rate_limit } = await show();
    expect(rate_limit).toEqual({ limit: 5000, window_seconds: 60, scope: 'api_token' });
  });

  it('STATUS-07 `rate_limit` shows 300 by default', async () => {
    expect((await show(unset.anonymous)).rate_limit.limit).toBe(300);
  });

  it('STATUS-08 `versioning` shows that v1 is current, supported and not deprecated', async () => {
    const { versioning } = await show();
    expect(versioning).toMatchObject({ current: 'v1', supported: ['v1'], deprecated: [] });
  });

  it('STATUS-09 `versioning.signalling` names the headers that announce a retirement', async () => {
    const { signalling } = (await show()).versioning;
    for (const name of ['Deprecation', 'Sunset', 'Link']) expect(signalling).toContain(name);
  });

  it('STATUS-10 `versioning.policy_url` is absolute and served', async () => {
    await expectServed((await show()).versioning.policy_url);
  });
});
