import { expect, it } from '@jest/globals';
import { Pool } from 'pg';
import { Keyring, masterKeyOf } from '#kernel/keyring.js';
import { MasterKeys } from '#database/master-keys.js';
import { NOBODY, PersonalKeys } from './personal-keys.js';

const ringOf = (byte: number) => {
  const key = masterKeyOf(Buffer.alloc(32, byte));
  return new Keyring([key], key, true);
};

const keysOf = (byte: number) =>
  new PersonalKeys(
    // Nothing listens there: a text about nobody needs no key of the database.
    new Pool({ host: '127.0.0.1', port: 1 }),
    MasterKeys.holding(ringOf(byte), new Map([['texts about nobody', Buffer.alloc(32, byte)]])),
  );

it('seals a text about nobody with a key that no erasure destroys', async () => {
  const text = { customerId: NOBODY, plain: Buffer.from('a card changed'), context: 'body evt_1' };
  const [sealed] = await keysOf(1).sealAll([text]);
  if (!sealed) throw new Error('it is not sealed');
  expect(sealed.includes('card')).toBe(false);
  const about = { customerId: NOBODY, sealed, context: 'body evt_1' };
  expect((await keysOf(1).openAll([about]))[0]?.toString()).toBe('a card changed');
  await expect(keysOf(1).openAll([{ ...about, context: 'body evt_2' }])).rejects.toThrow();
  await expect(keysOf(2).openAll([about])).rejects.toThrow();
});
