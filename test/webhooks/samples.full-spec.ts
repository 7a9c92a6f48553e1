import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { createHmac, generateKeyPairSync, sign } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { eventually } from '../support/jest/eventually.js';
import type { Program } from '../support/services/program.js';
import { Receiver, type Received } from '../support/emulators/webhook-receiver.js';
import { startService, type Client, type Service } from '../support/services/service.js';
import { startDispatcher, subscribe } from '../support/services/webhook-dispatcher.js';

/** Runs the samples of docs/webhooks.md unchanged on webhooks that a dispatcher has sent. */

const SLOW = 300_000;
const DOCS = readFileSync('docs/webhooks.md', 'utf8');

type Language = {
  /** The sample's language in a fenced block. */
  fence: string;
  file: string;
  /** The packages from npm that it imports. */
  imports?: string[];
  /** The Debian package that has the program. */
  debian: string;
  /** The one for the sample with a public key, if it needs another one; null: there is no such sample. */
  debianForPublicKey?: string | null;
  /** A program that calls the sample, and exits with 0 when the signature is valid and with 1 when it is not. */
  driver: { file: string; text: string };
  prepare?: string[];
  command: string[];
};

const LANGUAGES: Record<string, Language> = {
  'Node.js': {
    fence: 'js',
    file: 'verify.mjs',
    imports: ['standardwebhooks'],
    debian: 'nodejs',
    driver: {
      file: 'main.mjs',
      text: `
        import { readFileSync } from 'node:fs';
        import { verify } from './verify.mjs';
        const { SECRET, ID, TIMESTAMP, SIGNATURES } = process.env;
        process.exit(verify(SECRET, ID, TIMESTAMP, SIGNATURES, readFileSync('body')) ? 0 : 1);`,
    },
    command: [process.execPath, 'main.mjs'],
  },
  Python: {
    fence: 'python',
    file: 'verify.py',
    debian: 'python3',
    debianForPublicKey: 'python3-cryptography',
    driver: {
      file: 'main.py',
      text: [
        'import os, sys',
        'from verify import verify',
        "args = [os.environ[name] for name in ('SECRET', 'ID', 'TIMESTAMP', 'SIGNATURES')]",
        "sys.exit(0 if verify(*args, open('body', 'rb').read()) else 1)",
      ].join('\n'),
    },
    command: ['python3', 'main.py'],
  },
  PHP: {
    fence: 'php',
    file: 'verify.php',
    debian: 'php-cli',
    driver: {
      file: 'main.php',
      text: `<?php
        require 'verify.php';
        $args = array_map('getenv', ['SECRET', 'ID', 'TIMESTAMP', 'SIGNATURES']);
        exit(verify(...$args, body: file_get_contents('body')) ? 0 : 1);`,
    },
    command: ['php', 'main.php'],
  },
  Ruby: {
    fence: 'ruby',
    file: 'verify.rb',
    debian: 'ruby',
    driver: {
      file: 'main.rb',
      text: `
        require_relative 'verify'
        args = %w[SECRET ID TIMESTAMP SIGNATURES].map { |name| ENV.fetch(name) }
        exit verify(*args, File.binread('body'))`,
    },
    command: ['ruby', 'main.rb'],
  },
  Go: {
    fence: 'go',
    file: 'verify.go',
    debian: 'golang-go',
    driver: {
      file: 'main.go',
      text: `package main
        import "os"
        func main() {
          body, err := os.ReadFile("body")
          if err != nil { os.Exit(2) }
          get := os.Getenv
          if !verify(get("SECRET"), get("ID"), get("TIMESTAMP"), get("SIGNATURES"), body) { os.Exit(1) }
        }`,
    },
    prepare: ['go', 'build', '-o', 'main', 'main.go', 'verify.go'],
    command: ['./main'],
  },
  Java: {
    fence: 'java',
    file: 'Verify.java',
    debian: 'default-jdk-headless',
    driver: {
      file: 'Main.java',
      text: `
        import java.nio.file.*;
        class Main {
          public static void main(String[] arguments) throws Exception {
            var get = System.getenv();
            var body = Files.readAllBytes(Path.of("body"));
            System.exit(Verify.verify(get.get("SECRET"), get.get("ID"), get.get("TIMESTAMP"), get.get("SIGNATURES"), body) ? 0 : 1);
          }
        }`,
    },
    prepare: ['javac', 'Verify.java', 'Main.java'],
    command: ['java', '-cp', '.', 'Main'],
  },
  Perl: {
    fence: 'perl',
    file: 'verify.pl',
    debian: 'perl',
    debianForPublicKey: null,
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
    fence: 'sh',
    file: 'verify.sh',
    debian: 'openssl',
    debianForPublicKey: null,
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

/** Where the samples of each kind of signature begin. */
const SECRET_SAMPLES = '\n## Verify the signature';
const PUBLIC_KEY_SAMPLES = '\n### With a public key';

/** Reads the sample of a language. */
function readSample(fence: string, heading: string): string {
  const verification = DOCS.slice(DOCS.indexOf(heading));
  const [, code] = new RegExp(`^\`\`\`${fence}\n([^]*?)^\`\`\``, 'm').exec(verification) ?? [];
  if (code === undefined) throw new Error(`docs/webhooks.md has no sample in ${fence}`);
  return code;
}

function prepareSample(
  language: Language,
  heading = SECRET_SAMPLES,
): (delivery: Delivery, with_?: string) => boolean {
  const folder = mkdtempSync(join(tmpdir(), 'inkpad-sample-'));
  folders.push(folder);
  writeFileSync(join(folder, language.file), readSample(language.fence, heading));
  writeFileSync(join(folder, language.driver.file), language.driver.text);
  for (const name of language.imports ?? []) {
    mkdirSync(join(folder, 'node_modules'), { recursive: true });
    symlinkSync(resolve('node_modules', name), join(folder, 'node_modules', name));
  }
  const run = (command: string[], environment: NodeJS.ProcessEnv) => {
    const [program = '', ...rest] = command;
    const env = {
      PATH: process.env['PATH'],
      TMPDIR: process.env['TMPDIR'],
      HOME: folder,
      // Compiling its standard library takes Go 16 s of processor time.
      GOCACHE: join(homedir(), '.cache/go-build'),
      ...environment,
    };
    const result = spawnSync(program, rest, { cwd: folder, env, encoding: 'utf8' });
    if (result.error && 'code' in result.error && result.error.code === 'ENOENT') {
      throw new Error(`${program} is missing: apt-get install ${language.debian}`);
    }
    return result;
  };
  if (language.prepare) expect(run(language.prepare, {})).toMatchObject({ status: 0, stderr: '' });
  return ({ id, timestamp, signatures, body }, withSecret = secret) => {
    writeFileSync(join(folder, 'body'), body);
    const environment = {
      SECRET: withSecret,
      ID: id,
      TIMESTAMP: timestamp,
      SIGNATURES: signatures,
    };
    const { status, stderr } = run(language.command, environment);
    expect(stderr).toBe('');
    expect([0, 1]).toContain(status);
    return status === 0;
  };
}

describe.each(Object.entries(LANGUAGES))('the sample for %s', (name, language) => {
  let verify: ReturnType<typeof prepareSample>;

  beforeAll(() => {
    verify = prepareSample(language);
  }, SLOW);

  it('accepts every webhook that was sent', () => {
    expect(webhooks.length).toBeGreaterThanOrEqual(10);
    for (const one of webhooks) expect(verify(toDelivery(one))).toBe(true);
  });

  it('accepts either of two signatures', () => {
    const [one] = webhooks.map(toDelivery) as [Delivery];
    const other = `v1,${Buffer.alloc(32, 1).toString('base64')}`;
    for (const signatures of [`${other} ${one.signatures}`, `${one.signatures} ${other}`]) {
      expect(verify({ ...one, signatures })).toBe(true);
    }
  });

  it('rejects a request with a changed body, id, time or signature, or another secret', () => {
    const [one] = webhooks.map(toDelivery) as [Delivery];
    const otherSecret = `whsec_${Buffer.alloc(32, 2).toString('base64')}`;
    expect(verify({ ...one, body: Buffer.concat([one.body, Buffer.from(' ')]) })).toBe(false);
    expect(verify({ ...one, id: `${one.id}0` })).toBe(false);
    expect(verify({ ...one, timestamp: String(Number(one.timestamp) + 1) })).toBe(false);
    expect(verify({ ...one, signatures: one.signatures.replace('v1,', 'v1a,') })).toBe(false);
    expect(verify({ ...one, signatures: '' })).toBe(false);
    expect(verify(one, otherSecret)).toBe(false);
    expect(verify(toDelivery(flatWebhook))).toBe(false);
  });

  it('checks the age of a request, except in the shell', () => {
    const [one] = webhooks.map(toDelivery) as [Delivery];
    const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
    const signAt = (timestamp: string): Delivery => ({
      ...one,
      timestamp,
      signatures: `v1,${createHmac('sha256', key).update(`${one.id}.${timestamp}.`).update(one.body).digest('base64')}`,
    });
    const now = Math.floor(Date.now() / 1000);
    // The sample for the shell is for webhooks that were stored.
    const acceptsOld = name === 'the shell';
    expect(verify(signAt(String(now)))).toBe(true);
    expect(verify(signAt(String(now - 330)))).toBe(acceptsOld);
    expect(verify(signAt(String(now + 330)))).toBe(acceptsOld);
    expect(verify(signAt('soon'))).toBe(acceptsOld);
  });
});

const WITH_PUBLIC_KEY = Object.entries(LANGUAGES)
  .filter(([, { debianForPublicKey }]) => debianForPublicKey !== null)
  .map(([name, { debianForPublicKey, debian, ...language }]) => {
    return [name, { ...language, debian: debianForPublicKey ?? debian }] as const;
  });

describe.each(WITH_PUBLIC_KEY)('the sample for %s with a public key', (_name, language) => {
  let verify: ReturnType<typeof prepareSample>;

  beforeAll(() => {
    verify = prepareSample(language, PUBLIC_KEY_SAMPLES);
  }, SLOW);

  it('accepts every webhook that was sent', () => {
    expect(publicKey).toMatch(/^whpk_/);
    for (const one of signedWebhooks) expect(verify(toDelivery(one), publicKey)).toBe(true);
  });

  it('accepts either of two signatures', () => {
    const [one] = signedWebhooks.map(toDelivery) as [Delivery];
    for (const other of ['v1,AAAA', 'v1a,AAAA', `v1a,${Buffer.alloc(64, 1).toString('base64')}`]) {
      const signatures = `${other} ${one.signatures}`;
      expect(verify({ ...one, signatures }, publicKey)).toBe(true);
    }
  });

  it('rejects a request with a changed body, id, time or signature, or another key', () => {
    const [one] = signedWebhooks.map(toDelivery) as [Delivery];
    const [hmac] = webhooks.map(toDelivery) as [Delivery];
    const otherKey = `whpk_${Buffer.from('d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a', 'hex').toString('base64')}`;
    const rejected: Delivery[] = [
      { ...one, body: Buffer.concat([one.body, Buffer.from(' ')]) },
      { ...one, id: `${one.id}0` },
      { ...one, timestamp: String(Number(one.timestamp) + 1) },
      { ...one, timestamp: 'soon' },
      { ...one, signatures: one.signatures.replace('v1a,', 'v1,') },
      { ...one, signatures: '' },
      hmac,
    ];
    for (const delivery of rejected) expect(verify(delivery, publicKey)).toBe(false);
    expect(verify(one, otherKey)).toBe(false);
  });

  it('checks the age of a request', () => {
    const [one] = signedWebhooks.map(toDelivery) as [Delivery];
    const { privateKey, publicKey: own } = generateKeyPairSync('ed25519');
    const raw = own.export({ format: 'der', type: 'spki' }).subarray(-32);
    const key = `whpk_${raw.toString('base64')}`;
    const signAt = (offset: number): Delivery => {
      const timestamp = String(Math.floor(Date.now() / 1000) + offset);
      const signed = Buffer.concat([Buffer.from(`${one.id}.${timestamp}.`), one.body]);
      const signature = sign(null, signed, privateKey).toString('base64');
      return { ...one, timestamp, signatures: `v1a,${signature}` };
    };
    expect(verify(signAt(0), key)).toBe(true);
    expect(verify(signAt(-330), key)).toBe(false);
    expect(verify(signAt(330), key)).toBe(false);
  });
});

describe('the examples in docs/webhooks.md', () => {
  const examples = [...DOCS.matchAll(/^```json arrives\n([^]*?)^```/gm)]
    .map(([, text = '']) => JSON.parse(text) as Record<string, unknown>)
    .filter((example) => 'type' in example);

  it('show every type of event that was sent', () => {
    const types = examples.map(({ type }) => type);
    expect(types).toEqual(expect.arrayContaining(webhooks.map(({ body }) => body['type'])));
  });

  it('name no field that is not sent', () => {
    for (const example of examples) {
      const webhook = webhooks.find(({ body }) => body['type'] === example['type']);
      expect(listPaths(webhook?.body)).toEqual(expect.arrayContaining(listPaths(example)));
    }
  });
});

function listPaths(value: unknown, path = ''): string[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [path];
  return Object.entries(value).flatMap(([key, inner]) => listPaths(inner, `${path}.${key}`));
}
