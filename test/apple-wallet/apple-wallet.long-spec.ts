import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  it,
  jest,
} from '@jest/globals';
import { generateKeyPairSync } from 'node:crypto';
import pg from 'pg';
import { Registry } from 'prom-client';
import { AppleCertificate } from '#outbound/apple-wallet/apple-certificate.service.js';
import { AppleDevices } from '#outbound/apple-wallet/apple-devices.service.js';
import { ApplePushes } from '#outbound/apple-wallet/apple-pushes.service.js';
import { APNS_TIMEOUTS, ApnsClient } from '#outbound/apple-wallet/apns.client.js';
import { OutboundTunnels } from '#outbound/sending/outbound-tunnels.client.js';
import { Passes } from '#outbound/passes/passes.service.js';
import type { CustomerCard } from '#loyalty/stamping/customer-card.js';
import type { JobOutcome } from '#platform/database/job-queue.js';
import type { WalletJson } from '#outbound/passes/wallet-state.dto.js';
import { TEAM } from '../support/emulators/apple/certificates.mjs';
import type { Phone } from '../support/emulators/apple/phone.mjs';
import { appleWorld, type AppleWorld } from '../support/emulators/apple/world.js';
import { testConfig, createTestEnvironment } from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';
import { startProgram, type Program } from '../support/services/program.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

const SLOW = 300_000;
const NEVER = new AbortController().signal;
const TOKEN = 'ab'.repeat(32);

let world: AppleWorld;

beforeAll(async () => {
  world = await appleWorld();
});

beforeEach(() => world.apns.register(TOKEN));

afterAll(() => world.apns.stop());

describe('the connection to Apple’s push service', () => {
  let client: ApnsClient;

  const open = (
    times: Partial<typeof APNS_TIMEOUTS> = {},
    settings: NodeJS.ProcessEnv = {},
  ): ApnsClient => {
    const { apple } = testConfig('postgres://u:p@localhost/x', { ...world.settings, ...settings });
    if (!apple) throw new Error('the settings of Apple Wallet are missing');
    return new ApnsClient(apple, new OutboundTunnels(null), { ...APNS_TIMEOUTS, ...times });
  };

  afterEach(() => {
    client.close();
    world.apns.respondWith(null);
  });

  it('carries a hundred pushes at once', async () => {
    client = open();
    const before = world.apns.connections;
    const responses = await Promise.all(
      Array.from({ length: 100 }, () => client.push(TOKEN, NEVER)),
    );
    expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]));
    expect(world.apns.connections - before).toBe(1);
    expect(world.apns.pushes.at(-1)?.headers).toMatchObject({
      'apns-topic': 'pass.example.inkpad',
      'apns-push-type': 'background',
      'apns-priority': '5',
    });
  });

  it('is opened again after GOAWAY and after an outage of the service', async () => {
    client = open();
    await client.push(TOKEN, NEVER);
    world.apns.goAway();
    const pushAgain = () =>
      client.push(TOKEN, NEVER).then(
        ({ status }) => status,
        () => 0,
      );
    await eventually(pushAgain, (status) => status === 200);
    await world.apns.stop();
    await expect(client.push(TOKEN, NEVER)).rejects.toThrow();
    await world.apns.restart();
    await eventually(pushAgain, (status) => status === 200);
  });

  it('is closed when the service stops responding: by the time limit of a push, or a ping without a reply', async () => {
    client = open({ responseTimeoutMs: 200 });
    await client.push(TOKEN, NEVER);
    world.apns.fallSilent();
    await expect(client.push(TOKEN, NEVER)).rejects.toThrow(/no response within 200 ms/);
    await world.apns.stop();
    await world.apns.restart();
    expect((await client.push(TOKEN, NEVER)).status).toBe(200);
    client.close();

    client = open({ pingIntervalMs: 50, pongTimeoutMs: 50 });
    const before = world.apns.connections;
    await client.push(TOKEN, NEVER);
    world.apns.fallSilent();
    const pending = client.push(TOKEN, NEVER);
    await expect(pending).rejects.toThrow();
    await world.apns.stop();
    await world.apns.restart();
    expect((await client.push(TOKEN, NEVER)).status).toBe(200);
    expect(world.apns.connections - before).toBe(2);
  });

  it('rejects a push as soon as its signal is aborted', async () => {
    client = open();
    await client.push(TOKEN, NEVER);
    world.apns.fallSilent();
    const abort = new AbortController();
    const pending = client.push(TOKEN, abort.signal);
    abort.abort();
    await expect(pending).rejects.toThrow(/aborted/);
    await expect(client.push(TOKEN, abort.signal)).rejects.toThrow();
    await world.apns.stop();
    await world.apns.restart();
  });

  it('authenticates with a provider token instead of a certificate, and with a new token once Apple calls it expired', async () => {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
    const pem = publicKey.export({ type: 'spki', format: 'pem' }).toString();
    world.apns.trust('KEY1234567', pem, TEAM);
    client = open(
      {},
      {
        APNS_KEY: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
        APNS_KEY_ID: 'KEY1234567',
      },
    );
    expect(await client.push(TOKEN, NEVER)).toMatchObject({ status: 200 });
    const first = world.apns.pushes.at(-1)?.headers.authorization;
    expect((await client.push(TOKEN, NEVER)).status).toBe(200);
    expect(world.apns.pushes.at(-1)?.headers.authorization).toBe(first);
    world.apns.respondWith({ status: 403, reason: 'ExpiredProviderToken' });
    expect(await client.push(TOKEN, NEVER)).toMatchObject({ reason: 'ExpiredProviderToken' });
    world.apns.respondWith(null);
    expect((await client.push(TOKEN, NEVER)).status).toBe(200);
    expect(world.apns.pushes.at(-1)?.headers.authorization).not.toBe(first);
  });
});

describe('a phone with Apple Wallet passes', () => {
  let service: LocalService;
  let store: Client;
  let dispatcher: Program;

  const startDispatcher = () =>
    startProgram(
      'dist/apps/dispatcher/main.js',
      createTestEnvironment(service.database.url, { ...service.environment, LOG_LEVEL: 'fatal' }),
    );

  beforeAll(async () => {
    service = await startService(world.settings);
    store = await service.newStore();
    dispatcher = startDispatcher();
  }, SLOW);

  afterAll(async () => {
    await dispatcher.kill('SIGTERM');
    await service.stop();
  });

  afterEach(() => world.apns.respondWith(null));

  async function enrolWithPhone(): Promise<{
    phone: Phone;
    serial: string;
    path: string;
    id: number;
  }> {
    const { customerCard, path } = await enrol(store, { card: { stamps_required: 9 } });
    const phone = world.phone(service.baseUrl);
    const serial = await phone.add(customerCard.apple_wallet_url);
    return { phone, serial, path, id: customerCard.id };
  }

  async function waitForMessages(phone: Phone, count: number): Promise<void> {
    await eventually(
      () => phone.messages,
      (messages) => messages.length >= count,
    );
    await waitUntilSent();
    expect(phone.messages).toHaveLength(count);
    expect(phone.complaints).toEqual([]);
  }

  async function waitUntilSent(): Promise<void> {
    const countUpdates = async () =>
      (await service.database.query<{ left: number }>('select count(*) as left from pass_updates'))
        .rows[0]?.left;
    await eventually(countUpdates, (count) => Number(count) === 0);
  }

  it('gets at most two pushes for four stamps on two passes', async () => {
    const holder = await enrolWithPhone();
    const { customerCard, path } = await enrol(store, { card: { stamps_required: 9 } });
    await holder.phone.add(customerCard.apple_wallet_url);
    const before = world.apns.pushes.length;
    await Promise.all([
      store.stamp(holder.path),
      store.stamp(path),
      store.stamp(holder.path),
      store.stamp(path),
    ]);
    await eventually(
      () => holder.phone.messages,
      (messages) => messages.filter((message) => message.startsWith('7 more stamps')).length === 2,
    );
    await waitUntilSent();
    const pushes = world.apns.pushes.slice(before).filter((push) => push.token === holder.phone.pushToken); // prettier-ignore
    expect(pushes.length).toBeLessThanOrEqual(2);
  });

  it('gets one push with the newest balance after an outage of the push service', async () => {
    const { phone, path } = await enrolWithPhone();
    await world.apns.stop();
    await store.stamp(path);
    await store.stamp(path);
    const wallet = async () => (await store.get<WalletJson>(`${path}/wallet`)).body.apple;
    const failing = await eventually(wallet, ({ state }) => state === 'failing');
    expect(failing.last_error).toContain('Apple: ');
    expect(phone.messages).toEqual([]);
    await world.apns.restart();
    await waitForMessages(phone, 1);
    expect(phone.messages).toEqual(['7 more stamps to a full card.']);
    expect(await wallet()).toMatchObject({ state: 'installed', last_error: null });
  });

  it('gets the push that was in flight when the dispatcher was killed', async () => {
    const { phone, path } = await enrolWithPhone();
    await store.stamp(path);
    await waitForMessages(phone, 1);
    world.apns.fallSilent();
    await store.stamp(path);
    await eventually(
      async () => {
        const { rows } = await service.database.query<{ attempts: number }>(
          'select attempts from pass_updates',
        );
        return rows[0]?.attempts ?? 0;
      },
      (attempts) => attempts > 0,
    );
    await dispatcher.kill('SIGKILL');
    await world.apns.stop();
    await world.apns.restart();
    dispatcher = startDispatcher();
    await waitForMessages(phone, 2);
    expect(phone.messages.at(-1)).toBe('7 more stamps to a full card.');
  });

  it('gets a push for a stamp made between the download of the pass and its registration', async () => {
    const { customerCard, path } = await enrol(store, { card: { stamps_required: 9 } });
    const phone = world.phone(service.baseUrl);
    await fetch(service.baseUrl + new URL(customerCard.apple_wallet_url).pathname, {
      headers: { 'user-agent': 'iPhone' },
    });
    await store.stamp(path);
    await eventually(
      async () => {
        const { rows } = await service.database.query<{ tag: number }>(
          `select tag from passes where customer_card_id = ${customerCard.id}`,
        );
        return Number(rows[0]?.tag);
      },
      (tag) => tag > 0,
    );
    const before = world.apns.pushes.length;
    await phone.add(customerCard.apple_wallet_url);
    await eventually(
      () => world.apns.pushes.length,
      (count) => count > before,
    );
    await waitUntilSent();
    await eventually(
      () => phone.rounds,
      (rounds) => rounds > 0,
    );
    expect(phone.complaints).toEqual([]);
  });

  describe('while it registers', () => {
    const device = { libraryId: 'registering', passTypeId: 'pass.example.inkpad' };
    let devices: AppleDevices;
    let card: CustomerCard;

    beforeEach(async () => {
      devices = service.app.get(AppleDevices, { strict: false });
      const { customerCard } = await enrol(store);
      await fetch(service.baseUrl + new URL(customerCard.apple_wallet_url).pathname, {
        headers: { 'user-agent': 'iPhone' },
      });
      const holder = await service.app.get(Passes, { strict: false }).findHolder(customerCard.uuid);
      if (!holder) throw new Error('there is no such card');
      card = holder;
    });

    afterEach(() => devices.unregister(device, card.id));

    it('gets a push for a change of the pass whose transaction is still open', async () => {
      const before = world.apns.pushes.length;
      const writer = new pg.Client(service.database.url);
      await writer.connect();
      try {
        await writer.query('begin');
        await writer.query(
          `update passes set tag = nextval('pass_tags'), changed_at = clock_timestamp()
           where customer_card_id = ${card.id}`,
        );
        let isRegistered = false;
        const registration = devices.register(device, TOKEN, card).finally(() => {
          isRegistered = true;
        });
        const countBlocked = async () =>
          (await service.database.query('select 1 from pg_locks where not granted')).rowCount;
        await eventually(async () => isRegistered || (await countBlocked()) !== 0, Boolean);
        await writer.query('commit');
        await registration;
      } finally {
        await writer.end();
      }
      await eventually(
        () => world.apns.pushes.length,
        (count) => count > before,
      );
    });

    it('can register again after a registration failed halfway', async () => {
      await service.database.query('alter table pass_installations rename to away');
      await expect(devices.register(device, TOKEN, card)).rejects.toThrow();
      await service.database.query('alter table away rename to pass_installations');
      expect(await devices.register(device, TOKEN, card)).toBe(true);
    });
  });

  it('is unregistered when Apple reports its token as gone, unless it has registered since', async () => {
    const holder = await enrolWithPhone();
    const isInstalled = async () =>
      (await store.get<{ pass_installed: boolean }>(holder.path)).body.pass_installed;
    // It was gone an hour ago, and has registered since.
    world.apns.unregister(holder.phone.pushToken, Date.now() - 60 * 60_000);
    await store.stamp(holder.path);
    await waitUntilSent();
    expect(await isInstalled()).toBe(true);
    world.apns.unregister(holder.phone.pushToken, Date.now() + 60_000);
    await store.stamp(holder.path);
    await eventually(isInstalled, (value) => !value);
    const { rows } = await service.database.query('select from apple_devices where push_token = $1', [holder.phone.pushToken]); // prettier-ignore
    expect(rows).toEqual([]);
    await holder.phone.renewPushToken();
    expect(await isInstalled()).toBe(true);
  });

  describe('a push that Apple refuses', () => {
    let pushes: ApplePushes;
    let registry: Registry;
    let target: string;

    beforeAll(async () => {
      const config = testConfig(service.database.url, world.settings);
      registry = new Registry();
      const certificate = new AppleCertificate(config, new Registry());
      pushes = new ApplePushes(certificate, service.app.get(AppleDevices, { strict: false }), registry, config); // prettier-ignore
      const holder = await enrolWithPhone();
      const [pushTarget] = await pushes.findTargets([holder.id], service.app.get(pg.Pool));
      target = pushTarget?.target ?? '';
    });

    afterAll(() => pushes.onModuleDestroy());

    const send = (): Promise<JobOutcome> =>
      pushes.send({ channel: 'apple', target, accountId: 1, attempts: 1 }, NEVER);
    const readRefusedMetric = async () =>
      (await registry.getSingleMetricAsString('inkpad_apple_pushes_refused')).trim().split(' ').at(-1); // prettier-ignore

    it('is retried when Retry-After says after a 429, retried after a 503, and not retried after a 400', async () => {
      world.apns.respondWith({ status: 429, reason: 'TooManyRequests', headers: { 'retry-after': '7' } }); // prettier-ignore
      expect(await send()).toEqual({
        kind: 'failed',
        error: 'Apple: 429 TooManyRequests',
        retryInMs: 7_000,
      });
      world.apns.respondWith({ status: 503, reason: 'ServiceUnavailable' });
      expect(await send()).toEqual({ kind: 'failed', error: 'Apple: 503 ServiceUnavailable' });
      world.apns.respondWith({ status: 400, reason: 'PayloadEmpty' });
      expect(await send()).toEqual({ kind: 'refused', error: 'Apple: 400 PayloadEmpty' });
      world.apns.respondWith(null);
      expect(await send()).toEqual({ kind: 'done' });
    });

    it('because of the certificate pauses all pushes for five minutes', async () => {
      expect(await readRefusedMetric()).toBe('0');
      world.apns.respondWith({ status: 403, reason: 'BadCertificate' });
      expect(await send()).toMatchObject({ kind: 'failed', retryInMs: 5 * 60_000 });
      expect(await readRefusedMetric()).toBe('1');
      world.apns.respondWith(null);
      const before = world.apns.pushes.length;
      expect(await send()).toMatchObject({ kind: 'failed', error: 'Apple: 403 BadCertificate' });
      expect(world.apns.pushes.length).toBe(before);
    });

    it('pauses them until one is accepted: neither an overload, an outage nor a phone that is gone ends the pause', async () => {
      const realNow = performance.now.bind(performance);
      let passedMs = 0;
      const ticking = jest.spyOn(performance, 'now').mockImplementation(() => realNow() + passedMs);
      const forget = jest.spyOn(service.app.get(AppleDevices, { strict: false }), 'forget').mockResolvedValue(false); // prettier-ignore
      try {
        for (const reply of [
          { status: 429, reason: 'TooManyRequests' },
          { status: 500, reason: 'InternalServerError' },
          { status: 503, reason: 'ServiceUnavailable' },
          { status: 400, reason: 'PayloadEmpty' },
          { status: 400, reason: 'BadDeviceToken' },
          { status: 410, reason: 'Unregistered' },
        ]) {
          passedMs += 6 * 60_000;
          world.apns.respondWith(reply);
          const before = world.apns.pushes.length;
          await send();
          expect(world.apns.pushes.length).toBe(before);
          expect(await readRefusedMetric()).toBe('1');
          world.apns.respondWith(null);
          expect(await send()).toMatchObject({ error: 'Apple: 403 BadCertificate' });
          expect(world.apns.pushes.length).toBe(before);
        }
        passedMs += 6 * 60_000;
        world.apns.respondWith({ status: 429, reason: 'TooManyRequests', headers: { 'retry-after': '1200' } }); // prettier-ignore
        await send();
        world.apns.respondWith(null);
        passedMs += 19 * 60_000;
        expect(await send()).toMatchObject({ error: 'Apple: 403 BadCertificate' });
        passedMs += 60_000;
        expect(await send()).toEqual({ kind: 'done' });
        expect(await readRefusedMetric()).toBe('0');
      } finally {
        ticking.mockRestore();
        forget.mockRestore();
        world.apns.respondWith(null);
      }
    });

    it('is not recorded as a failure when the process ended before it was made', async () => {
      const pushed = pushes.send({ channel: 'apple', target, accountId: 1, attempts: 1 }, AbortSignal.abort()); // prettier-ignore
      expect(await pushed).toEqual({ kind: 'unsent' });
    });
  });
});
