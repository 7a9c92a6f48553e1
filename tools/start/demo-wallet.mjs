import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { Apns } from '../../test/support/emulators/apple/apns.mjs';
import { appleCertificates } from '../../test/support/emulators/apple/certificates.mjs';
import { Phone } from '../../test/support/emulators/apple/phone.mjs';
import { startGoogleWallet } from '../../test/support/emulators/google/server.mjs';
import { endWithParent } from '../../apps/cli/npm-parent.mjs';

/**
 * Shows a stamp arriving in wallets, without an account at Apple or Google: starts an Inkpad of its own, a push service
 * and a Google Wallet as the tests have them, and a phone with the pass. Exits 1 if anything is not as expected.
 */

const PUBLIC_URL = 'https://cards.example';
const PATIENCE_MS = 120_000;
const QUIET_MS = 5_000;

const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => stop.abort());
endWithParent();

const dataDir = mkdtempSync(join(tmpdir(), 'inkpad-demo-'));
// Passable, because PostgreSQL runs as another user when this one is root.
chmodSync(dataDir, 0o711);
const undo = [() => rmSync(dataDir, { recursive: true, force: true })];

try {
  await show();
  console.log('\nEverything works as expected.');
} catch (error) {
  console.error(`\nSomething went wrong: ${error.message}`);
  process.exitCode = 1;
} finally {
  for (const step of undo.reverse()) await step();
}

async function show() {
  const { phone, google, call, path } = await playOnTwoPhones();
  const untilShown = async (count) => {
    await waitUntil(() => phone.messages.length >= count, 'a message on the phone');
    await waitUntil(() => google.notifications.length >= count, 'a notification by Google');
    say(`  the phone shows:  ${phone.messages.at(-1)}`);
    say(`  Google notifies:  ${google.notifications.at(-1).text}`);
  };
  say('The shop gives two stamps');
  await call('POST', `${path}/stamp`, { stamps: 2 });
  await untilShown(1);
  say('and three more, which unlock the reward');
  await call('POST', `${path}/stamp`, { stamps: 3 });
  await untilShown(2);

  say('One more, without a notification');
  const { rounds } = phone;
  await call('POST', `${path}/stamp`, { stamps: 1, skip_notifications: true });
  await waitUntil(() => phone.rounds > rounds, 'the silent update');
  await wait(QUIET_MS, undefined, { signal: stop.signal });
  expect(phone.messages.length, 2, 'messages on the phone');
  expect(google.notifications.length, 2, 'notifications by Google');
  say('  the pass is up to date, and nobody was disturbed');
  expect(phone.complaints.length, 0, `complaints of the phone (${phone.complaints.join('; ')})`);
  const wallet = await call('GET', `${path}/wallet`);
  expect(`${wallet.apple.state} ${wallet.google.state}`, 'installed installed', 'in GET …/wallet');
}

async function playOnTwoPhones() {
  const certificates = readCertificates();
  const apns = await Apns.start(certificates);
  undo.push(() => apns.stop());
  const google = await startGoogleWallet({ allowHttp: true });
  undo.push(() => google.stop());
  say('A push service and a Google Wallet are running on this machine');

  const { baseUrl, token, accountId } = await startInkpad({
    APPLE_PASS_CERT: certificates.pass.certificate,
    APPLE_PASS_KEY: certificates.pass.key,
    APPLE_WWDR_CERT: certificates.wwdr,
    APNS_URL: apns.url,
    APNS_CA_CERT: certificates.root,
    ...google.environment,
  });
  const reaches = (url) => url.replace(PUBLIC_URL, baseUrl);
  const call = createCaller(baseUrl, token);
  const store = `/api/v1/accounts/${accountId}`;

  const card = await call('POST', `${store}/cards`, {
    card: {
      name: 'Coffee card',
      stamps_required: 10,
      strip_type: 'preset',
      strip_preset: 'coffee',
    },
  });
  await call('POST', `${store}/rewards`, {
    reward: { card_id: card.id, name: 'Free coffee', stamps_required: 5 },
  });
  const { id, customer_card: enrolled } = await call('POST', `${store}/customers`, {
    customer: { first_name: 'Ada', email: 'ada@customer.example' },
    card_id: card.id,
  });
  const path = `${store}/customers/${id}/customer_cards/${enrolled.id}`;

  const phone = new Phone({ root: certificates.root, apns, reaches });
  await phone.add(enrolled.apple_wallet_url);
  say('The phone has opened the link, checked the signature and added the pass to its Wallet');
  const link = await fetch(reaches(enrolled.google_wallet_url), { redirect: 'manual' });
  const saved = await google.save(link.headers.get('location'));
  if (!saved.ok) throw new Error(`Google did not take the link: ${saved.status}`);
  const [object] = google.objects.values();
  await fetch(`${baseUrl}/wallet/google/callback`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: google.envelope({ classId: object.classId, objectId: object.id, eventType: 'save' }),
  });
  say('Another one has saved it to Google Wallet');
  return { phone, google, call, path };
}

function readCertificates() {
  try {
    return appleCertificates();
  } catch (cause) {
    throw new Error('openssl, which makes the certificates of this demo, did not run.', { cause });
  }
}

/** Starts Inkpad. The credentials are those that `npm start` prints on its first start. */
async function startInkpad(settings) {
  const port = await findFreePort();
  say('Starting an Inkpad of its own: seconds, or minutes where packages have to be installed …');
  const inkpad = spawn(process.execPath, ['tools/start/start.mjs'], {
    env: {
      ...process.env,
      ...createEmptyEnvironment(),
      ...settings,
      INKPAD_PARENT_PID: String(process.pid),
      DATA_DIR: dataDir,
      PORT: String(port),
      PUBLIC_URL,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  inkpad.stdout.on('data', (chunk) => (output += chunk));
  inkpad.stderr.on('data', (chunk) => (output += chunk));
  const ended = once(inkpad, 'exit');
  undo.push(async () => {
    inkpad.kill('SIGINT');
    await ended;
  });
  await waitUntil(() => {
    if (inkpad.exitCode !== null) throw new Error(`Inkpad did not start:\n${output}`);
    return output.includes('API token: ');
  }, 'Inkpad to start');
  const local = JSON.parse(readFileSync(join(dataDir, 'local.json'), 'utf8'));
  return {
    baseUrl: `http://127.0.0.1:${port}`,
    token: local.api_token,
    accountId: local.account_id,
  };
}

/** Creates empty settings, so that neither the environment nor .env leads it to a database that is in use. */
function createEmptyEnvironment() {
  const settings = readFileSync('.env.example', 'utf8').matchAll(/^#([A-Z0-9_]+)=/gm);
  const names = [...settings].flatMap(([, name]) => [name, `${name}_FILE`]);
  return Object.fromEntries(['NODE_ENV', ...names].map((name) => [name, '']));
}

function createCaller(baseUrl, token) {
  return async (method, path, body) => {
    const response = await fetch(baseUrl + path, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok)
      throw new Error(`${method} ${path} responded with ${response.status} ${text}`);
    return JSON.parse(text);
  };
}

async function waitUntil(holds, what) {
  for (const deadline = Date.now() + PATIENCE_MS; !holds(); await wait(50)) {
    if (stop.signal.aborted) throw new Error('it was stopped');
    if (Date.now() > deadline) throw new Error(`waited in vain for ${what}`);
  }
}

function expect(actual, expected, what) {
  if (actual !== expected) throw new Error(`${actual} ${what} instead of ${expected}`);
}

async function findFreePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  return port;
}

function say(text) {
  console.log(text);
}
