import { expect, it } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import { signature, signingKey } from './webhook-signature.js';

it.each([
  ['{"a":1}', `whsec_${Buffer.alloc(32, 7).toString('base64')}`],
  ['{"é":"☕"}', `whsec_${Buffer.alloc(24, 255).toString('base64')}`],
  ['', `whsec_${Buffer.alloc(64, 1).toString('base64')}`],
])('signs %j as the library of Standard Webhooks does', (text, secret) => {
  const seconds = '1780000000';
  const expected = new Webhook(secret).sign('evt_1', new Date(Number(seconds) * 1000), text);
  expect(signature(signingKey(secret), 'evt_1', seconds, Buffer.from(text))).toBe(expected);
});
