import { afterEach, describe, expect, it } from '@jest/globals';
import { createTestDatabase } from '../support/database/database.js';
import { announcedDatabase } from '../support/services/retirement.js';
import { Client, startService, type Service } from '../support/services/service.js';

type Body = { versioning: Record<string, string> };

const DAY = 24 * 60 * 60 * 1000;
const daysFromNow = (days: number) => new Date(Date.now() + days * DAY);

let service: Service;
let anonymous: Client;

/** Starts a service on a database where these dates were announced in time. */
async function start(deprecated: Date, sunset?: Date): Promise<void> {
  service = await startService(
    {
      API_V1_DEPRECATION_DATE: deprecated.toISOString(),
      ...(sunset && { API_V1_SUNSET_DATE: sunset.toISOString() }),
    },
    await announcedDatabase(deprecated, sunset ?? null),
  );
  anonymous = new Client(service.baseUrl, 0, null);
}

afterEach(() => service.stop());

const versioning = async () => (await anonymous.get<Body>('/api/v1/status')).body.versioning;

describe('an API version with a future deprecation date', () => {
  it('shows its dates in the status, and no Deprecation header outside the API', async () => {
    const [deprecated, sunset] = [daysFromNow(30), daysFromNow(30 + 400)];
    await start(deprecated, sunset);
    expect(await versioning()).toMatchObject({
      deprecation_date: deprecated.toISOString(),
      sunset_date: sunset.toISOString(),
    });
    for (const path of ['/docs', '/health/live', '/nowhere']) {
      expect((await anonymous.get(path)).headers.has('deprecation')).toBe(false);
    }
  });
});

describe('a deprecated API version', () => {
  it('has no sunset date until one is set', async () => {
    await start(daysFromNow(-30));
    const { headers, body } = await anonymous.get<Body>('/api/v1/status');
    expect([headers.has('deprecation'), headers.has('sunset')]).toEqual([true, false]);
    expect(body.versioning).not.toHaveProperty('sunset_date');
  });
});

describe('the page about versioning', () => {
  it('shows that the version is deprecated, and its sunset date', async () => {
    await start(daysFromNow(-30), daysFromNow(340));
    const { policy_url, sunset_date } = await versioning();
    const page = await anonymous.get(new URL(policy_url ?? '').pathname);
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(page.headers.get('content-security-policy')).toMatch(
      /default-src 'none'.*script-src 'self'/,
    );
    expect(page.text).toContain('deprecated since');
    expect(page.text).toContain(sunset_date);
  });

  it('is served after the version was retired', async () => {
    await start(daysFromNow(-400), daysFromNow(-1));
    const page = await anonymous.get('/docs/versioning');
    expect([page.status, page.text.includes('retired since')]).toEqual([200, true]);
  });
});

describe('the announced dates', () => {
  const settings = {
    API_V1_DEPRECATION_DATE: daysFromNow(30).toISOString(),
    API_V1_SUNSET_DATE: daysFromNow(400).toISOString(),
  };
  it('are stored once by three apis that start at the same time', async () => {
    const database = await createTestDatabase();
    const [first, ...others] = await Promise.all(
      Array.from({ length: 3 }, () => startService(settings, database)),
    );
    if (first) service = first;
    await Promise.all(others.map(({ app }) => app.close()));
    const { rows } = await database.query('select id from api_retirements');
    expect(rows).toHaveLength(1);
  });
});
