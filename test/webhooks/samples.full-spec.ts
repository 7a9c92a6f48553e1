import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { createHmac, generateKeyPairSync, sign } from 'node:crypto';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '../support/jest/eventually.js';
import { findFreePort, type Program } from '../support/services/program.js';
import {
  copySample,
  prepareReceiver,
  RECEIVERS,
  startReceiver,
  type ReceiverLanguage,
} from '../support/guides/receivers.js';
import { Receiver, type Received } from '../support/emulators/webhook-receiver.js';
import { startService, type Client, type Service } from '../support/services/service.js';
import { startDispatcher, subscribe } from '../support/services/webhook-dispatcher.js';

/** Verifies webhooks that a dispatcher has sent with every file of docs/receivers, unchanged. */

const SLOW = 300_000;

/** A function that verifies, and a program that calls it: 0 means that the signature is valid, 1 that it is not. */
type Sample = {
  file: string;
  /** The Debian package that has the program. */
  debian: string;
  takesPublicKey: boolean;
  driver: { file: string; text: string };
  command: string[];
};

const SAMPLES: Record<string, Sample> = {
  Ruby: {
    file: 'verify.rb',
    debian: 'ruby',
    takesPublicKey: true,
    driver: {
      file: 'main.rb',
      text: `
        require_relative 'verify'
        args = %w[SECRET ID TIMESTAMP SIGNATURES].map { |name| ENV.fetch(name) }
        exit verify(*args, File.binread('body'))`,
    },
    command: ['ruby', 'main.rb'],
  },
  Perl: {
    file: 'verify.pl',
    debian: 'perl',
    takesPublicKey: false,
    driver: {
      file: 'main.pl',
      text: `
        require './verify.pl';
        open my $file, '<:raw', 'body' or exit 2;
        my $body = do { local $/; <$file> };
        exit(verify(@ENV{qw(SECRET ID TIMESTAMP SIGNATURES)}, $body) ? 0 : 1);`,
    },
    command: ['perl', 'main.pl'],
  },
  'the shell': {
    file: 'verify.sh',
    debian: 'openssl',
    takesPublicKey: false,
    driver: {
      file: 'main.sh',
      text: `
        . ./verify.sh
        is_signed "$SECRET" "$ID" "$TIMESTAMP" "$SIGNATURES" body`,
    },
    command: ['sh', 'main.sh'],
  },
};

type Delivery = { id: string; timestamp: string; signatures: string; body: Buffer };

let service: Service;
let dispatcher: Program;
let receivers: Receiver[];
let secret: string;
let webhooks: Received[];
let flatWebhook: Received;
/** What a subscription with ed25519 received. */
let publicKey: string;
let signedWebhooks: Received[];
const folders: string[] = [];
const programs: Program[] = [];
const verifiers = new Map<string, Verify>();

beforeAll(async () => {
  service = await startService({ WEBHOOK_ALLOW_INSECURE_TARGETS: 'true' });
  dispatcher = await startDispatcher(service);
  receivers = [await Receiver.start(), await Receiver.start(), await Receiver.start()];
  const [envelopeReceiver, flatReceiver, keyReceiver] = receivers as [Receiver, Receiver, Receiver];
  const store = await service.newStore();
  ({ secret } = await subscribe(store, envelopeReceiver, { events: ['*'] }));
  await subscribe(store, flatReceiver, { event: 'customer.created', payload_format: 'flat' });
  const { public_key: key } = await subscribe(store, keyReceiver, {
    events: ['*'],
    signature: 'ed25519',
  });
  publicKey = key ?? '';
  // Starting processes takes long on a busy machine, and webhooks older than five minutes are rejected.
  for (const [name, sample] of Object.entries(SAMPLES)) verifiers.set(name, prepareSample(sample));
  for (const [name, language] of Object.entries(RECEIVERS)) {
    verifiers.set(name, await prepareReceiverSample(language));
  }
  await play(store);
  await eventually(
    () => [envelopeReceiver, flatReceiver, keyReceiver].map(({ events }) => events.length),
    ([all = 0, one = 0, signed = 0]) => all >= 10 && one >= 1 && signed >= 5,
  );
  webhooks = envelopeReceiver.events;
  [flatWebhook] = flatReceiver.events as [Received];
  signedWebhooks = keyReceiver.events;
}, SLOW);

afterAll(async () => {
  await Promise.all(programs.map((program) => program.kill('SIGKILL')));
  await dispatcher.kill('SIGTERM');
  await Promise.all(receivers.map((receiver) => receiver.stop()));
  await service.stop();
  for (const folder of folders) rmSync(folder, { recursive: true });
}, SLOW);

async function play(store: Client): Promise<void> {
  const card = await store.post<{ id: number }>(`${store.store}/cards`, {
    card: { name: 'Café crème ☕', stamps_required: 2 },
  });
  const reward = await store.post<{ id: number }>(`${store.store}/rewards`, {
    reward: { card_id: card.body.id, name: 'Törtchen', stamps_required: 2 },
  });
  const customer = await store.post<{ id: number; customer_card: { id: number } }>(
    `${store.store}/customers`,
    { customer: { first_name: 'Zoë “Z” 李', email: 'zoe@example.com' }, card_id: card.body.id },
  );
  const { id, customer_card: customerCard } = customer.body;
  const path = `${store.store}/customers/${id}/customer_cards/${customerCard.id}`;
  expect((await store.stamp(path, 2)).status).toBe(200);
  expect((await store.post(`${path}/redeem`, { reward_id: reward.body.id })).status).toBe(200);
  const location = { name: 'Old Town', address: 'Marktplatz 1' };
  expect((await store.post(`${store.store}/locations`, { location })).status).toBe(201);
  const poster = { card_id: card.body.id };
  expect((await store.post(`${store.store}/posters`, { poster })).status).toBe(201);
  const account = { store_name: 'Corner Café' };
  expect((await store.send('PATCH', store.store, { account })).status).toBe(200);
}

function toDelivery({ headers, text }: Received): Delivery {
  return {
    id: String(headers['webhook-id']),
    timestamp: String(headers['webhook-timestamp']),
    signatures: String(headers['webhook-signature']),
    body: Buffer.from(text),
  };
}

type Verify = (delivery: Delivery, key?: string) => Promise<boolean>;

/** Prepares a program that calls a sample. */
function prepareSample({ file, debian, driver, command }: Sample): Verify {
  const folder = copySample(file);
  folders.push(folder);
  writeFileSync(join(folder, driver.file), driver.text);
  const [program = '', ...rest] = command;
  return async ({ id, timestamp, signatures, body }, key = secret) => {
    writeFileSync(join(folder, 'body'), body);
    const request = { SECRET: key, ID: id, TIMESTAMP: timestamp, SIGNATURES: signatures };
    const env = { PATH: process.env['PATH'], HOME: folder, ...request };
    const { error, status, stderr } = spawnSync(program, rest, {
      cwd: folder,
      env,
      encoding: 'utf8',
    });
    if (error) throw new Error(`${program} is missing: apt-get install ${debian}`);
    expect(stderr).toBe('');
    expect([0, 1]).toContain(status);
    return status === 0;
  };
}

/** Starts a receiver with the secret and one with the public key, and others with further keys when they are needed. */
async function prepareReceiverSample(language: ReceiverLanguage): Promise<Verify> {
  const folder = prepareReceiver(language);
  folders.push(folder);
  const urls = new Map<string, Promise<string>>();
  const start = async (key: string) => {
    const port = await findFreePort();
    programs.push(...(await startReceiver(language, folder, { secret: key, port })));
    return `http://127.0.0.1:${port}/hooks`;
  };
  const findUrl = (key: string) => {
    const url = urls.get(key) ?? start(key);
    urls.set(key, url);
    return url;
  };
  await Promise.all([secret, publicKey].map(findUrl));
  return async ({ id, timestamp, signatures, body }, key = secret) => {
    const headers = {
      'webhook-id': id,
      'webhook-timestamp': timestamp,
      'webhook-signature': signatures,
    };
    const { status } = await fetch(await findUrl(key), { method: 'POST', headers, body });
    expect([204, 401]).toContain(status);
    return status === 204;
  };
}

const WITH_SECRET = [...Object.keys(RECEIVERS), ...Object.keys(SAMPLES)];
const WITH_PUBLIC_KEY = WITH_SECRET.filter((name) => SAMPLES[name]?.takesPublicKey !== false);

function getVerifier(name: string): Verify {
  const verify = verifiers.get(name);
  if (!verify) throw new Error(`${name} is not prepared`);
  return verify;
}

describe.each(WITH_SECRET)('the sample for %s', (name) => {
  const verify: Verify = (...args) => getVerifier(name)(...args);

  it('accepts every webhook that was sent', async () => {
    expect(webhooks.length).toBeGreaterThanOrEqual(10);
    for (const webhook of webhooks) expect(await verify(toDelivery(webhook))).toBe(true);
  });

  it('accepts either of two signatures', async () => {
    const [delivery] = webhooks.map(toDelivery) as [Delivery];
    const signature = `v1,${Buffer.alloc(32, 1).toString('base64')}`;
    for (const signatures of [
      `${signature} ${delivery.signatures}`,
      `${delivery.signatures} ${signature}`,
    ]) {
      expect(await verify({ ...delivery, signatures })).toBe(true);
    }
  });

  it('rejects a request with a changed body, id, time or signature, or another secret', async () => {
    const [delivery] = webhooks.map(toDelivery) as [Delivery];
    const otherSecret = `whsec_${Buffer.alloc(32, 2).toString('base64')}`;
    expect(
      await verify({ ...delivery, body: Buffer.concat([delivery.body, Buffer.from(' ')]) }),
    ).toBe(false);
    expect(await verify({ ...delivery, id: `${delivery.id}0` })).toBe(false);
    expect(await verify({ ...delivery, timestamp: String(Number(delivery.timestamp) + 1) })).toBe(
      false,
    );
    expect(
      await verify({ ...delivery, signatures: delivery.signatures.replace('v1,', 'v1a,') }),
    ).toBe(false);
    expect(await verify({ ...delivery, signatures: '' })).toBe(false);
    expect(await verify(delivery, otherSecret)).toBe(false);
    expect(await verify(toDelivery(flatWebhook))).toBe(false);
  });

  it('checks the age of a request, except in the shell', async () => {
    const [delivery] = webhooks.map(toDelivery) as [Delivery];
    const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
    const signAt = (timestamp: string): Delivery => ({
      ...delivery,
      timestamp,
      signatures: `v1,${createHmac('sha256', key).update(`${delivery.id}.${timestamp}.`).update(delivery.body).digest('base64')}`,
    });
    const now = Math.floor(Date.now() / 1000);
    // The sample for the shell is for webhooks that were stored.
    const acceptsOld = name === 'the shell';
    expect(await verify(signAt(String(now)))).toBe(true);
    expect(await verify(signAt(String(now - 330)))).toBe(acceptsOld);
    expect(await verify(signAt(String(now + 330)))).toBe(acceptsOld);
    expect(await verify(signAt('soon'))).toBe(acceptsOld);
  });
});

describe.each(WITH_PUBLIC_KEY)('the sample for %s with a public key', (name) => {
  const verify: Verify = (...args) => getVerifier(name)(...args);

  it('accepts every webhook that was sent', async () => {
    expect(publicKey).toMatch(/^whpk_/);
    for (const webhook of signedWebhooks)
      expect(await verify(toDelivery(webhook), publicKey)).toBe(true);
  });

  it('accepts either of two signatures', async () => {
    const [delivery] = signedWebhooks.map(toDelivery) as [Delivery];
    for (const signature of [
      'v1,AAAA',
      'v1a,AAAA',
      `v1a,${Buffer.alloc(64, 1).toString('base64')}`,
    ]) {
      const signatures = `${signature} ${delivery.signatures}`;
      expect(await verify({ ...delivery, signatures }, publicKey)).toBe(true);
    }
  });

  it('rejects a request with a changed body, id, time or signature, or another key', async () => {
    const [ed25519] = signedWebhooks.map(toDelivery) as [Delivery];
    const [hmac] = webhooks.map(toDelivery) as [Delivery];
    const otherKey = `whpk_${Buffer.from('d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a', 'hex').toString('base64')}`;
    const rejected: Delivery[] = [
      { ...ed25519, body: Buffer.concat([ed25519.body, Buffer.from(' ')]) },
      { ...ed25519, id: `${ed25519.id}0` },
      { ...ed25519, timestamp: String(Number(ed25519.timestamp) + 1) },
      { ...ed25519, timestamp: 'soon' },
      { ...ed25519, signatures: ed25519.signatures.replace('v1a,', 'v1,') },
      { ...ed25519, signatures: '' },
      hmac,
    ];
    for (const delivery of rejected) expect(await verify(delivery, publicKey)).toBe(false);
    expect(await verify(ed25519, otherKey)).toBe(false);
  });

  it('checks the age of a request', async () => {
    const [delivery] = signedWebhooks.map(toDelivery) as [Delivery];
    const { privateKey, publicKey: own } = generateKeyPairSync('ed25519');
    const raw = own.export({ format: 'der', type: 'spki' }).subarray(-32);
    const key = `whpk_${raw.toString('base64')}`;
    const signAt = (offset: number): Delivery => {
      const timestamp = String(Math.floor(Date.now() / 1000) + offset);
      const signed = Buffer.concat([Buffer.from(`${delivery.id}.${timestamp}.`), delivery.body]);
      const signature = sign(null, signed, privateKey).toString('base64');
      return { ...delivery, timestamp, signatures: `v1a,${signature}` };
    };
    expect(await verify(signAt(0), key)).toBe(true);
    expect(await verify(signAt(-330), key)).toBe(false);
    expect(await verify(signAt(330), key)).toBe(false);
  });
});

describe('the examples of webhooks in openapi.json', () => {
  const { webhooks: documented } = JSON.parse(readFileSync('openapi.json', 'utf8')) as OpenApi;
  const findExample = (type: string) =>
    documented[type]?.post.requestBody.content['application/json'].examples.envelope.value;

  it('show every type of event that was sent', () => {
    for (const { body } of webhooks) expect(findExample(String(body['type']))).toBeDefined();
  });

  it('name no field that is not sent', () => {
    for (const { body } of webhooks) {
      const example = findExample(String(body['type']));
      expect(listPaths(body)).toEqual(expect.arrayContaining(listPaths(example)));
    }
  });
});

type OpenApi = {
  webhooks: Record<
    string,
    {
      post: {
        requestBody: {
          content: { 'application/json': { examples: { envelope: { value: object } } } };
        };
      };
    }
  >;
};

function listPaths(value: unknown, path = ''): string[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [path];
  return Object.entries(value).flatMap(([key, inner]) => listPaths(inner, `${path}.${key}`));
}
