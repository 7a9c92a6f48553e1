import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import {
  createAuthorization,
  encryptMessage,
  generateKeyPair,
} from '../../../../libs/web/web-card/web-push-message.js';
import { startPushService, type PushService, type SubscribedBrowser } from './server.mjs';

const sender = generateKeyPair();
const CONTACT = 'https://cards.example';
let service: PushService;
let browser: SubscribedBrowser;

beforeAll(async () => {
  service = await startPushService();
  browser = service.subscribe(sender.publicKey.toString('base64url'));
});
afterAll(() => service.stop());

function encrypt(text: string, own = generateKeyPair()): Buffer {
  const { p256dh, auth } = browser.subscription.keys;
  const keys = { p256dh: Buffer.from(p256dh, 'base64url'), auth: Buffer.from(auth, 'base64url') };
  return encryptMessage(Buffer.from(text), keys, own, randomBytes(16));
}

type Changes = { headers?: Record<string, string | null>; body?: Buffer; url?: string };

async function post({ headers = {}, body, url }: Changes = {}): Promise<number> {
  const { endpoint } = browser.subscription;
  const all = {
    authorization: await createAuthorization(endpoint, sender, CONTACT, new Date()),
    ttl: '60',
    'content-encoding': 'aes128gcm',
    ...headers,
  };
  const entries = Object.entries(all).filter(
    (entry): entry is [string, string] => entry[1] !== null,
  );
  const response = await fetch(url ?? endpoint, {
    method: 'POST',
    headers: entries,
    body: new Uint8Array(body ?? encrypt('hello')),
  });
  return response.status;
}

/** Creates an Authorization header, by default a valid one. */
function token(change: { contact?: string; at?: Date; endpoint?: string; pair?: typeof sender }) {
  const { contact = CONTACT, at = new Date(), endpoint, pair = sender } = change;
  return createAuthorization(endpoint ?? browser.subscription.endpoint, pair, contact, at);
}

describe('the Web Push emulator', () => {
  it('accepts and decrypts a valid message', async () => {
    expect(await post({ headers: { topic: 'card', urgency: 'high' } })).toBe(201);
    expect(browser.messages).toEqual([{ text: 'hello', ttl: 60, topic: 'card', urgency: 'high' }]);
  });

  it('refuses an unknown endpoint with 404', async () => {
    expect(await post({ url: `${service.origin}/push/AAAA` })).toBe(404);
  });

  it('refuses an ended subscription with 410', async () => {
    const { subscription, end } = service.subscribe(sender.publicKey.toString('base64url'));
    end();
    expect(await post({ url: subscription.endpoint })).toBe(410);
  });

  it('refuses a request without a vapid Authorization header with 401', async () => {
    expect(await post({ headers: { authorization: null } })).toBe(401);
    expect(await post({ headers: { authorization: 'Bearer abc' } })).toBe(401);
  });

  it('refuses a key that the browser did not subscribe with, with 403', async () => {
    expect(
      await post({ headers: { authorization: await token({ pair: generateKeyPair() }) } }),
    ).toBe(403);
  });

  it('refuses a token that the key did not sign, with 403', async () => {
    const right = await token({});
    const forgery = (await token({ pair: generateKeyPair() })).replace(
      /k=.*/,
      right.slice(right.indexOf('k=')),
    );
    expect(await post({ headers: { authorization: forgery } })).toBe(403);
    const none = Buffer.from('{"alg":"none"}').toString('base64url');
    expect(await post({ headers: { authorization: right.replace(/t=[\w-]+/, `t=${none}`) } })).toBe(
      403,
    );
  });

  it('refuses a token for another push service with 403', async () => {
    const authorization = await token({ endpoint: 'https://push.example/1' });
    expect(await post({ headers: { authorization } })).toBe(403);
  });

  it('refuses a token that has expired, or is valid for more than a day, with 403', async () => {
    const hours = (by: number) => new Date(Date.now() + by * 3_600_000);
    expect(await post({ headers: { authorization: await token({ at: hours(-13) }) } })).toBe(403);
    expect(await post({ headers: { authorization: await token({ at: hours(13) }) } })).toBe(403);
  });

  it('refuses a token without a contact with 403', async () => {
    expect(await post({ headers: { authorization: await token({ contact: 'me' }) } })).toBe(403);
  });

  it('refuses a message without a numeric TTL with 400', async () => {
    expect(await post({ headers: { ttl: null } })).toBe(400);
    expect(await post({ headers: { ttl: 'soon' } })).toBe(400);
  });

  it('refuses a topic that is too long or not base64url with 400', async () => {
    expect(await post({ headers: { topic: 'a'.repeat(33) } })).toBe(400);
    expect(await post({ headers: { topic: 'a b' } })).toBe(400);
  });

  it('refuses an unknown urgency with 400', async () => {
    expect(await post({ headers: { urgency: 'extreme' } })).toBe(400);
  });

  it('refuses a message of more than 4096 bytes with 413', async () => {
    expect(await post({ body: encrypt('a'.repeat(4_050)) })).toBe(413);
  });

  it('refuses another content encoding with 415', async () => {
    expect(await post({ headers: { 'content-encoding': 'aesgcm' } })).toBe(415);
  });

  it('refuses a body with an invalid header or several records with 400', async () => {
    expect(await post({ body: Buffer.from('hello') })).toBe(400);
    const short = encrypt('hello');
    short.writeUInt32BE(18, 16);
    expect(await post({ body: short })).toBe(400);
  });

  it('refuses a message that the browser cannot decrypt with 400', async () => {
    const body = encrypt('hello');
    body[body.length - 1] = (body.at(-1) ?? 0) ^ 1;
    expect(await post({ body })).toBe(400);
  });
});
