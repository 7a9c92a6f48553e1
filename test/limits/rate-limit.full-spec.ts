import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Controller, Get } from '@nestjs/common';
import { SkipThrottle, Throttle } from '#platform/http/throttle.js';
import { LimitToken } from '#identity/token.commands.js';
import { ApiModule } from '../../apps/api/api.module.js';
import { createServer } from '../../apps/api/server.js';
import {
  testConfig,
  createTestDatabase,
  createTestEnvironment,
  type TestDatabase,
} from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';
import { startProgram, type Program } from '../support/services/program.js';
import { cli, Client, startService, type Service } from '../support/services/service.js';

describe('the rate limit per minute', () => {
  let service: Service;
  let store: Client;
  let anonymous: Client;

  // A service for each test: they all come from the same address.
  beforeEach(async () => {
    service = await startService({ RATE_LIMIT_PER_MINUTE: '3' });
    store = await service.newStore();
    anonymous = new Client(service.baseUrl, store.accountId, null);
  });
  afterEach(() => service.stop());

  const getRemaining = ({ headers }: { headers: Headers }) =>
    Number(headers.get('ratelimit-remaining'));

  it('rises for one token with LimitToken and stays for its IP address', async () => {
    for (let i = 0; i < 4; i++) await store.get('/api/v1/accounts');
    expect((await store.get('/api/v1/accounts')).status).toBe(429);
    const { rows } = await service.database.query('select max(id) as id from api_tokens');
    await service.execute(new LimitToken(cli, Number(rows[0].id), 1000));
    const response = await eventually(
      () => store.get('/api/v1/accounts'),
      ({ status }) => status === 200,
    );
    expect(response.headers.get('ratelimit-limit')).toBe('1000');
    expect(response.headers.get('ratelimit-policy')).toBe('1000;w=60');
    expect((await anonymous.get('/api/v1/status')).headers.get('ratelimit-limit')).toBe('3');
  });

  it('does not count requests for pages and health checks', async () => {
    for (let i = 0; i < 5; i++) {
      expect((await anonymous.get('/docs')).status).toBe(200);
      expect((await anonymous.get('/health/live')).status).toBe(200);
    }
    expect(getRemaining(await anonymous.get('/api/v1/status'))).toBe(2);
  });
});

@Controller('pages')
class Pages {
  @Get('sign-in')
  @Throttle(2, 900_000)
  signIn(): string {
    return 'sign in';
  }

  @Get('about')
  about(): string {
    return 'about';
  }

  @Get('picture')
  @SkipThrottle()
  picture(): string {
    return 'picture';
  }
}

describe('the rate limit of a page', () => {
  it('is that of its decorator and does not count requests for other pages', async () => {
    const database = await createTestDatabase();
    const config = testConfig(database.url, { PAGE_RATE_LIMIT_PER_MINUTE: '3' });
    const app = await createServer(
      { module: class {}, imports: [ApiModule.forRoot(config)], controllers: [Pages] },
      config,
    );
    try {
      await app.listen(0, '127.0.0.1');
      const baseUrl = await app.getUrl();
      const statuses = async (page: string) => {
        const responses = [];
        for (let i = 0; i < 4; i++) responses.push(await fetch(`${baseUrl}/pages/${page}`));
        const [last] = responses.slice(-1);
        return [...responses.map(({ status }) => status), last?.headers.get('retry-after')];
      };
      expect(await statuses('sign-in')).toEqual([200, 200, 429, 429, '900']);
      expect(await statuses('about')).toEqual([200, 200, 200, 429, expect.any(String)]);
      expect(await statuses('picture')).toEqual([200, 200, 200, 200, null]);
    } finally {
      await app.close();
      await database.close();
    }
  });
});

describe('the rate limit behind a proxy', () => {
  let service: Service;

  beforeAll(async () => {
    service = await startService({ TRUST_PROXY_HOPS: '1', RATE_LIMIT_PER_MINUTE: '100' });
  });
  afterAll(() => service.stop());

  const getRemaining = async (forwarded: string) => {
    const { headers } = await fetch(`${service.baseUrl}/api/v1/status`, {
      headers: { 'x-forwarded-for': forwarded },
    });
    return Number(headers.get('ratelimit-remaining'));
  };

  it('counts IPv6 addresses by /64 network', async () => {
    expect(await getRemaining('2001:db8:1:2::1')).toBe(99);
    expect(await getRemaining('2001:db8:1:2:3:4:5:6')).toBe(98);
    expect(await getRemaining('2001:db8:1:3::1')).toBe(99);
  });

  it('counts by IP address, whatever port or zone the proxy adds', async () => {
    const forms = [
      '198.51.100.2:1001',
      '198.51.100.2:1002',
      '198.51.100.2',
      '[::ffff:198.51.100.2]:1003',
      '203.0.113.9, 198.51.100.2:1004',
    ];
    for (const [i, form] of forms.entries())
      expect([form, await getRemaining(form)]).toEqual([form, 99 - i]);
    expect(await getRemaining('198.51.100.3:1001')).toBe(99);
    const six = ['[2001:db8:5:6::1]:443', '[2001:db8:5:6::2]:444', '2001:db8:5:6::3%eth0'];
    for (const [i, form] of six.entries())
      expect([form, await getRemaining(form)]).toEqual([form, 99 - i]);
  });

  it('counts all invalid addresses as one client', async () => {
    const forms = ['unknown', '_hidden', '_hidden:1', 'x'.repeat(3_000), '12345', 'a.example:1'];
    for (const [i, form] of forms.entries())
      expect([form, await getRemaining(form)]).toEqual([form, 99 - i]);
  });

  it('counts sign-ins by IP address, whatever port the proxy adds', async () => {
    // At once: one after another, they could take longer than the minute in which they are counted.
    const responses = Array.from({ length: 60 }, (_, i) =>
      fetch(`${service.baseUrl}/app/sign-in`, {
        method: 'POST',
        redirect: 'manual',
        headers: { 'x-forwarded-for': `198.51.100.7:${i + 1}` },
        body: new URLSearchParams({ email: 'nobody@example.com', password: 'wrong' }),
      }),
    );
    const statuses = (await Promise.all(responses)).map(({ status }) => status);
    expect(statuses).toContain(429);
  });
});

describe('the rate limit of pages', () => {
  let service: Service;

  beforeAll(async () => {
    service = await startService({ PAGE_RATE_LIMIT_PER_MINUTE: '4' });
  });
  afterAll(() => service.stop());

  it('counts existing and missing pages together, and neither health checks nor the API', async () => {
    const statuses = [];
    for (const path of ['/docs', '/openapi.json', '/nowhere', '/docs', '/docs', '/nowhere']) {
      const response = await fetch(service.baseUrl + path);
      statuses.push(response.status);
      const text = await response.text();
      const isJson = response.headers.get('content-type')?.startsWith('application/json');
      const { code } = (isJson ? JSON.parse(text) : {}) as { code?: string };
      const isLimited = response.status === 429;
      expect([response.headers.has('retry-after'), code === 'rate_limited']).toEqual([
        isLimited,
        isLimited,
      ]);
    }
    expect(statuses).toEqual([200, 200, 404, 200, 429, 429]);
    expect((await fetch(`${service.baseUrl}/health/ready`)).status).toBe(200);
    expect((await fetch(`${service.baseUrl}/api/v1/status`)).status).toBe(200);
  });
});

describe('a second api on the same database', () => {
  let database: TestDatabase;
  const programs: Program[] = [];

  beforeAll(async () => {
    database = await createTestDatabase();
  });
  afterAll(async () => {
    await Promise.all(programs.map((program) => program.kill('SIGTERM')));
    await database.close();
  });

  async function startApi(): Promise<Program> {
    const program = startProgram(
      'dist/apps/api/main.js',
      createTestEnvironment(database.url, { LOG_LEVEL: 'info' }),
    );
    programs.push(program);
    await eventually(program.output, (text) => text.includes('listening on'));
    return program;
  }

  it('makes both apis log a warning while REDIS_URL is not set', async () => {
    const first = await startApi();
    expect(first.output()).not.toContain('without REDIS_URL');
    await startApi();
    for (const program of programs) {
      const output = await eventually(program.output, (text) => text.includes('without REDIS_URL'));
      expect(output).toMatch(/WARN.*2 apis run on this database without REDIS_URL/);
    }
  });
});
