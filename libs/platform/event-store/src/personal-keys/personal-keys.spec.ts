import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Pool } from 'pg';
import { UnavailableError } from '#kernel/errors.js';
import { Keyring, createMasterKey } from '#kernel/keyring.js';
import { RejectedError } from '#kernel/errors.js';
import { seal } from '#kernel/sealing.js';
import { MasterKeys } from '#database/master-keys.js';
import type { NewEvent, StoredEvent } from '../port/event-store.js';
import { NOBODY, PERSONAL_KEYS_COLUMN, PersonalKeys } from './personal-keys.js';
import { Subjects } from './personal-parts.js';

const ringOf = (byte: number) => {
  const key = createMasterKey(Buffer.alloc(32, byte));
  return new Keyring([key], key);
};

const keysOf = (byte: number) =>
  new PersonalKeys(
    // Nothing listens there: a text about nobody needs no key of the database.
    new Pool({ host: '127.0.0.1', port: 1 }),
    MasterKeys.withKeys(ringOf(byte), new Map([['texts about nobody', Buffer.alloc(32, byte)]])),
    new Subjects('subjectId', () => new RejectedError({})),
  );

it('seals a text about nobody with a key that no erasure destroys', async () => {
  const text = { subjectId: NOBODY, plain: Buffer.from('a order changed'), context: 'body evt_1' };
  const [sealed] = await keysOf(1).sealAll([text]);
  if (!sealed) throw new Error('it is not sealed');
  expect(sealed.includes('order')).toBe(false);
  const about = { subjectId: NOBODY, sealed, context: 'body evt_1' };
  expect((await keysOf(1).openAll([about]))[0]?.toString()).toBe('a order changed');
  await expect(keysOf(1).openAll([{ ...about, context: 'body evt_2' }])).rejects.toThrow();
  await expect(keysOf(2).openAll([about])).rejects.toThrow();
});

describe('the sealed part of an event', () => {
  const event = (id: string, type: string): NewEvent => {
    const at = '2026-01-31T09:00:00.000Z';
    return {
      id,
      type,
      version: 1,
      data: { subjectId: NOBODY, items: 1, personal: { note: 'oat milk' } },
      meta: {
        accountId: 7,
        actor: { type: 'token', id: 31 },
        channel: 'api',
        requestId: 'r',
        occurredAt: at,
        recordedAt: at,
      },
    };
  };
  const ID = '0f0e0d0c-0b0a-4908-8706-050403020100';
  const OTHER_ID = '1f0e0d0c-0b0a-4908-8706-050403020100';

  /** As it stands in the history. */
  async function stored(sealedEvents: NewEvent): Promise<StoredEvent> {
    const [sealed] = await keysOf(1).sealEvents([sealedEvents]);
    if (!sealed) throw new Error('sealing events keeps their number');
    const place = { stream: 'order-12', revision: 0, hash: '' };
    return { ...sealed, ...place, position: { commit: 1n, prepare: 1n } };
  }

  it('opens in its own event, beside what everybody may read', async () => {
    const one = await stored(event(ID, 'ItemsAdded'));
    expect(one.data).toEqual({ subjectId: NOBODY, items: 1, personal: expect.any(String) });
    expect(JSON.stringify(one.data)).not.toContain('oat');
    const [opened] = await keysOf(1).openEvents([one]);
    expect(opened?.data).toEqual(event(ID, 'ItemsAdded').data);
  });

  it('does not open in another event, nor in one of another type', async () => {
    const one = await stored(event(ID, 'ItemsAdded'));
    for (const other of [event(OTHER_ID, 'ItemsAdded'), event(ID, 'ItemsRemoved')]) {
      const moved = { ...(await stored(other)), data: one.data };
      await expect(keysOf(1).openEvents([moved])).rejects.toThrow();
    }
  });

  it('is left as it is where an event has none', async () => {
    const plain = { ...event(ID, 'ItemsAdded'), data: { subjectId: NOBODY, personal: null } };
    expect(await keysOf(1).sealEvents([plain])).toEqual([plain]);
  });
});

describe('the key of a person', () => {
  let now = 1_000;
  beforeEach(() => {
    jest.spyOn(performance, 'now').mockImplementation(() => now);
  });
  afterEach(() => {
    jest.restoreAllMocks();
  });

  /** @param milliseconds until the database answers */
  function lateAnswer(milliseconds: number) {
    const { purpose, getContext } = PERSONAL_KEYS_COLUMN;
    const wrapped = ringOf(1).seal(purpose, Buffer.alloc(32, 9), getContext(5));
    return jest.fn(() => {
      now += milliseconds;
      return Promise.resolve([
        { subject_id: 5, wrapped, previous_wrapped: null, is_renewed: false },
      ]);
    });
  }

  it('is asked for again five seconds after it was asked for, however late that was answered', async () => {
    const keys = keysOf(1);
    const read = lateAnswer(1_500);
    expect((await keys.load([5], read)).get(5)).toEqual(Buffer.alloc(32, 9));
    now += 3_000;
    await keys.load([5], read);
    expect(read).toHaveBeenCalledTimes(1);
    now += 1_000;
    await keys.load([5], read);
    expect(read).toHaveBeenCalledTimes(2);
  });

  it('is not used when the database says too late which key it is', async () => {
    const read = lateAnswer(6_000);
    await expect(keysOf(1).load([5], read)).rejects.toThrow(UnavailableError);
    expect(read).toHaveBeenCalledTimes(3);
  });

  it('that is renewed again opens nothing of before the first time, which counts as erased', async () => {
    const { purpose, getContext } = PERSONAL_KEYS_COLUMN;
    const [first, second, third] = [1, 2, 3].map((byte) => Buffer.alloc(32, byte));
    if (!first || !second || !third) throw new Error('three keys were made');
    const wrapped = (key: Buffer) => ringOf(1).seal(purpose, key, getContext(5));
    const keys = keysOf(1);
    const text = (key: Buffer) => ({
      subjectId: 5,
      sealed: seal(key, Buffer.from('oat milk'), 'note'),
      context: 'note',
    });
    const again = { wrapped: wrapped(third), previous_wrapped: wrapped(second) };
    keys.remember(5, { ...again, is_renewed: true }, now);
    const opened = await keys.openAll([first, second, third].map(text));
    expect(opened.map((plain) => plain?.toString())).toEqual([undefined, 'oat milk', 'oat milk']);
  });
});
