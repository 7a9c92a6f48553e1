import { expect, it } from '@jest/globals';
import type { MasterKeys } from '#platform/database/master-keys.js';
import { WebhookSecrets } from './webhook-secrets.service.js';

/** Counts what is opened. A sealed text names its context; only the same context opens it. */
class CountingKeys {
  openedCount = 0;

  seal(_purpose: string, plain: Buffer, context: string): Buffer {
    return Buffer.from(`${context}|${plain.toString()}`);
  }

  open(_purpose: string, sealed: Buffer, context: string): Buffer {
    this.openedCount++;
    const [sealedFor, plain = ''] = sealed.toString().split('|');
    if (sealedFor !== context) throw new Error('unsealable');
    return Buffer.from(plain);
  }
}

function create(): { secrets: WebhookSecrets; keys: CountingKeys } {
  const keys = new CountingKeys();
  return { secrets: new WebhookSecrets(keys as unknown as MasterKeys), keys };
}

it('opens the same sealed bytes once, and others anew', () => {
  const { secrets, keys } = create();
  const sealed = secrets.seal(1, 'whsec_a');
  expect([secrets.open(1, sealed), secrets.open(1, Buffer.from(sealed))]).toEqual([
    'whsec_a',
    'whsec_a',
  ]);
  expect(keys.openedCount).toBe(1);
  expect(secrets.open(1, secrets.seal(1, 'whsec_b'))).toBe('whsec_b');
  const headers = secrets.sealHeaders(1, { authorization: 'Basic x' });
  for (let i = 0; i < 2; i++)
    expect(secrets.openHeaders(1, headers)).toEqual({ authorization: 'Basic x' });
  expect(keys.openedCount).toBe(3);
});

it('opens nothing for another subscription or purpose, even what is cached', () => {
  const { secrets } = create();
  const sealed = secrets.seal(1, '{}');
  expect(secrets.open(1, sealed)).toBe('{}');
  expect(secrets.open(2, sealed)).toBeNull();
  expect(secrets.openHeaders(1, sealed)).toBeNull();
});
