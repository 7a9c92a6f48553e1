import { expect, it } from '@jest/globals';
import { createPublicKey, verify } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { createSigningKey, createSigningSecret, sign } from './webhook-signature.js';

it.each([
  ['{"a":1}', `whsec_${Buffer.alloc(32, 7).toString('base64')}`],
  ['{"é":"☕"}', `whsec_${Buffer.alloc(24, 255).toString('base64')}`],
  ['', `whsec_${Buffer.alloc(64, 1).toString('base64')}`],
])('sign returns for %j the signature of the Standard Webhooks library', (text, secret) => {
  const seconds = '1780000000';
  const expected = new Webhook(secret).sign('evt_1', new Date(Number(seconds) * 1000), text);
  expect(sign(createSigningKey(secret), 'evt_1', seconds, Buffer.from(text))).toBe(expected);
});

it('sign returns a signature that the library verifies with this secret and body only', () => {
  const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
  const body = '{"type":"stamp.earned"}';
  const seconds = String(Math.floor(Date.now() / 1000));
  const headers = {
    'webhook-id': 'evt_1',
    'webhook-timestamp': seconds,
    'webhook-signature': sign(createSigningKey(secret), 'evt_1', seconds, Buffer.from(body)),
  };
  expect(new Webhook(secret).verify(body, headers)).toEqual({ type: 'stamp.earned' });
  expect(() => new Webhook(secret).verify(`${body} `, headers)).toThrow('No matching signature');
  const otherWebhook = new Webhook(`whsec_${Buffer.alloc(32, 8).toString('base64')}`);
  expect(() => otherWebhook.verify(body, headers)).toThrow('No matching signature');
});

/** The keys of RFC 8032, section 7.1, test 3. */
const RFC_8032 = {
  seed: 'c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7',
  publicKey: 'fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025',
};

it('createSigningSecret derives the public key of an Ed25519 key as RFC 8032 does', () => {
  const { secret, publicKey } = createSigningSecret('ed25519', Buffer.from(RFC_8032.seed, 'hex'));
  expect(secret).toBe(`whsk_${Buffer.from(RFC_8032.seed, 'hex').toString('base64')}`);
  expect(publicKey).toBe(`whpk_${Buffer.from(RFC_8032.publicKey, 'hex').toString('base64')}`);
  expect(createSigningSecret('hmac', Buffer.alloc(32, 7)).publicKey).toBeNull();
});

it.each(['', '{"a":1}', '{"é":"☕"}'])(
  'sign returns for %j a v1a signature that the public key verifies, with this body only',
  (text) => {
    const { secret, publicKey } = createSigningSecret('ed25519', Buffer.alloc(32, 7));
    const [version, signature = ''] = sign(
      createSigningKey(secret),
      'evt_1',
      '1780000000',
      Buffer.from(text),
    ).split(',');
    expect(version).toBe('v1a');
    const x = Buffer.from(publicKey?.slice('whpk_'.length) ?? '', 'base64').toString('base64url');
    const key = createPublicKey({ format: 'jwk', key: { kty: 'OKP', crv: 'Ed25519', x } });
    const isValid = (message: string) =>
      verify(null, Buffer.from(message), key, Buffer.from(signature, 'base64'));
    expect(isValid(`evt_1.1780000000.${text}`)).toBe(true);
    expect(isValid(`evt_1.1780000000.${text} `)).toBe(false);
    expect(isValid(`evt_1.1780000001.${text}`)).toBe(false);
  },
);
