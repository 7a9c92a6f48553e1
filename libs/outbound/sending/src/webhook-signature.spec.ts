import { expect, it } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import { sign, createSigningKey } from './webhook-signature.js';

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
  const other = new Webhook(`whsec_${Buffer.alloc(32, 8).toString('base64')}`);
  expect(() => other.verify(body, headers)).toThrow('No matching signature');
});
