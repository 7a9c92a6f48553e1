import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { Secret, TOTP } from 'otpauth';
import { clock } from '#platform/kernel/clock.js';
import { CreateToken } from '#identity/token.commands.js';
import { Browser } from '../support/browser/browser.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { eventually } from '../support/jest/eventually.js';
import { setClockAhead } from '../support/services/clock.js';
import { samples } from '../support/services/metrics.js';
import { findFreePort, type Program } from '../support/services/program.js';
import { startSecondApi } from '../support/services/second-api.js';
import { cli, Client, startService, type LocalService } from '../support/services/service.js';
import { stamp, subscribe, useWebhooks } from '../support/services/webhook-dispatcher.js';
import { isSigned } from '../support/emulators/webhook-receiver.js';

const HOUR = 3_600_000;
const PASSWORD = 'correct horse';
/** For what happens between two readings of a clock in a test, also on a busy machine. */
const MARGIN_MS = HOUR / 2;
const OFF = [
  ['two hours ahead', 2 * HOUR],
  ['two hours behind', -2 * HOUR],
] as const;

let service: LocalService;
let store: Client & { email: string };
const webhooks = useWebhooks(() => service);

beforeAll(async () => {
  service = await startService({
    WEBHOOK_ALLOW_INSECURE_TARGETS: 'true',
    TRUST_PROXY_HOPS: '1',
  });
  store = await service.newStore();
});
afterAll(() => service.stop());

const expectNow = (time: unknown) =>
  expect(Math.abs(Date.parse(String(time)) - Date.now())).toBeLessThan(MARGIN_MS);

async function readOffset(metricsPort: number): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
  return samples(text).value('inkpad_clock_offset_seconds') ?? NaN;
}

describe.each(OFF)('an api whose clock is %s', (_what, aheadMs) => {
  let api: Client;
  let program: Program;
  let metricsPort: number;

  beforeAll(async () => {
    metricsPort = await findFreePort();
    const { second, program: started } = await startSecondApi(service, store, {
      ...setClockAhead(aheadMs),
      METRICS_PORT: String(metricsPort),
      LOG_LEVEL: 'info',
    });
    [api, program] = [second, started];
  });

  it('records the time of the database', async () => {
    const since = new Date(Date.now() - 1_000).toISOString();
    const { path } = await enrol(api);
    await stamp(api, path);
    const event = (await service.history()).at(-1);
    expectNow(event?.meta.recordedAt);
    expectNow(event?.meta.occurredAt);
    const { body: card } = await api.get<{ updated_at: string; created_at: string }>(path);
    expectNow(card.updated_at);
    expectNow(card.created_at);
    const { body } = await store.get<{ customers: { id: number }[] }>(
      `${store.store}/customers?updated_since=${since}`,
    );
    expect(body.customers.map(({ id }) => path.includes(`/customers/${id}/`))).toContain(true);
  });

  it('is found by updated_since from an api whose clock is right, and the other way round', async () => {
    const list = async (reader: Client, since: string) => {
      const { body } = await reader.get<{ id: number }[]>(
        `${store.store}/cards?updated_since=${since}`,
      );
      return body.map(({ id }) => id);
    };
    for (const [writer, reader] of [
      [api, store],
      [store, api],
    ] as const) {
      const since = new Date(Date.now() - 2_000).toISOString();
      const card = { name: `Tea ${randomUUID()}`, stamps_required: 10 };
      const { body } = await writer.post<{ id: number }>(`${store.store}/cards`, { card });
      expect(await list(reader, since)).toContain(body.id);
      const later = new Date(Date.now() + MARGIN_MS).toISOString();
      expect(await list(reader, later)).toEqual([]);
    }
  });

  it('accepts tokens until they expire by the clock of the database', async () => {
    const expiring = async (ms: number) => {
      const expiresAt = new Date(Date.now() + HOUR);
      const { token, tokenId } = await service.execute(
        new CreateToken(cli, store.email, randomUUID(), expiresAt),
      );
      await service.database.query('update api_tokens set expires_at = $2 where id = $1', [
        tokenId,
        new Date(Date.now() + ms),
      ]);
      return new Client(api.baseUrl, store.accountId, token).get(`${store.store}/cards`);
    };
    expect((await expiring(HOUR)).status).toBe(200);
    expect((await expiring(-HOUR)).status).toBe(401);
  });

  it('signs users in, with codes of an app whose clock is right', async () => {
    const owner = await service.newStore();
    const browser = new Browser(api);
    const { location } = await browser.signIn(owner.email, PASSWORD);
    expect(location).toBe(`/app/stores/${owner.accountId}`);
    await browser.get('/app/account/codes');
    await browser.post('/app/account/codes/begin', { password: PASSWORD });
    const page = await browser.get('/app/account/codes');
    const [, key = ''] = /class="secret"[^>]*>([A-Z2-7 ]+)</.exec(page.text) ?? [];
    const totp = new TOTP({ secret: Secret.fromBase32(key.replaceAll(' ', '')) });
    const code = totp.generate();
    expect((await browser.post('/app/account/codes/confirm', { code })).text).toMatch(/<li>/);
    const again = new Browser(api);
    expect((await again.signIn(owner.email, PASSWORD)).location).toBe('/app/sign-in/code');
    const next = totp.generate({ timestamp: Date.now() + 30_000 });
    expect((await again.post('/app/sign-in/code', { code: next })).location).toBe(location);
    expect((await again.get('/app/account')).status).toBe(200);
  });

  it('creates tokens on the pages that expire at the right time', async () => {
    const browser = new Browser(api);
    await browser.signIn(store.email, PASSWORD);
    const page = `/app/stores/${store.accountId}/tokens`;
    await browser.get(page);
    const name = `for a month ${aheadMs}`;
    await browser.post(page, { name, lifetime: '30', current_password: PASSWORD });
    const { rows } = await service.database.query<{ seconds: number }>(
      `select extract(epoch from expires_at - now())::float8 as seconds from api_tokens where name = $1`,
      [name],
    );
    expect(Math.abs((rows[0]?.seconds ?? 0) - 30 * 86_400)).toBeLessThan(MARGIN_MS / 1_000);
  });

  it('says so in one line and a metric, and once it is right again', async () => {
    const offset = await readOffset(metricsPort);
    expect(Math.abs(offset * 1_000 - aheadMs)).toBeLessThan(MARGIN_MS);
    const direction = aheadMs > 0 ? 'ahead of' : 'behind';
    const countLines = (text: string | RegExp) => program.output().split(text).length - 1;
    // As far as the response of the database was late.
    const line = new RegExp(`the clock of this machine is 7[12]\\d\\d[.]\\d s ${direction}`);
    expect(countLines(line)).toBe(1);

    const { path } = await enrol(api);
    program.signal('SIGUSR2');
    await eventually(
      () => countLines('agree again'),
      (count) => count === 1,
    );
    expect(Math.abs(await readOffset(metricsPort)) * 1_000).toBeLessThan(MARGIN_MS);
    await stamp(api, path);
    expectNow((await service.history()).at(-1)?.meta.recordedAt);
  });
});

describe.each(OFF)('a dispatcher whose clock is %s', (_what, aheadMs) => {
  it('signs webhooks with a time that receivers accept, and retries when it is due', async () => {
    const receiver = await webhooks.receive((_received, nth) => ({
      status: nth === 1 ? 500 : 200,
    }));
    const { secret } = await subscribe(store, receiver);
    const dispatcher = await webhooks.startDispatcher(setClockAhead(aheadMs));
    const { path } = await enrol(store);
    await stamp(store, path);
    await eventually(
      () => receiver.received.length,
      (count) => count === 2,
    );
    for (const received of receiver.received) {
      // Refuses what is more than five minutes off.
      expect(isSigned(received, secret)).toBe(true);
      const timestamp = Number(received.headers['webhook-timestamp']) * 1_000;
      expect(Math.abs(timestamp - received.at)).toBeLessThan(MARGIN_MS);
    }
    await eventually(
      async () => {
        const rows = await webhooks.queryRows<{ seconds: number }>(
          `select max(abs(extract(epoch from now() - at)))::float8 as seconds from webhook_attempts`,
        );
        return rows[0]?.seconds;
      },
      (seconds) => seconds !== null && seconds !== undefined && seconds < MARGIN_MS / 1_000,
    );
    await dispatcher.kill('SIGTERM');
  });
});

describe('after a failover to a database whose clock is behind', () => {
  it('recorded_at does not fall along a stream, whichever process writes', async () => {
    const { path } = await enrol(store);
    await stamp(store, path);
    const { body: before } = await store.get<{ updated_at: string }>(path);
    // The next process takes over the time of the new server at its start.
    const behind = jest.spyOn(clock, 'getMs').mockImplementation(() => Date.now() - HOUR);
    await stamp(store, path);
    behind.mockRestore();
    const { body: after } = await store.get<{ updated_at: string }>(path);
    expect(after.updated_at >= before.updated_at).toBe(true);
    const times = (await service.history())
      .filter(({ stream }) => path.endsWith(`/${stream.replace('customer_card-', '')}`))
      .map(({ meta }) => meta.recordedAt);
    expect(times.length).toBeGreaterThan(2);
    expect(times).toEqual([...times].sort());
  });
});
