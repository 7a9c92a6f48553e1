import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Pool } from 'pg';
import { UnavailableError } from '#platform/kernel/errors.js';
import { Keyring, createMasterKey } from '#platform/kernel/keyring.js';
import { RejectedError } from '#platform/kernel/errors.js';
import { seal } from '#platform/kernel/sealing.js';
import { MasterKeys } from '#platform/database/master-keys.js';
import type { NewEvent, StoredEvent } from '../port/event-store.js';
import { NOBODY, PERSONAL_KEYS_COLUMN, PersonalKeys } from './personal-keys.js';
import { Subjects } from './personal-parts.js';

const createKeyring = (byte: number) => {
  const key = createMasterKey(Buffer.alloc(32, byte));
  return new Keyring([key], key);
};

const createPersonalKeys = (byte: number) =>
  new PersonalKeys(
    // Nothing listens on this port: a text about nobody needs no key from the database.
    new Pool({ host: '127.0.0.1', port: 1 }),
    MasterKeys.withKeys(
      createKeyring(byte),
      new Map([['texts about nobody', Buffer.alloc(32, byte)]]),
    ),
    new Subjects('subjectId', () => new RejectedError({})),
  );

it('PersonalKeys opens a text about nobody only with its master key and its context', async () => {
  const text = { subjectId: NOBODY, plain: Buffer.from('a order changed'), context: 'body evt_1' };
  const [sealed] = await createPersonalKeys(1).sealAll([text]);
  if (!sealed) throw new Error('it is not sealed');
  expect(sealed.includes('order')).toBe(false);
  const about = { subjectId: NOBODY, sealed, context: 'body evt_1' };
  expect((await createPersonalKeys(1).openAll([about]))[0]?.toString()).toBe('a order changed');
  await expect(
    createPersonalKeys(1).openAll([{ ...about, context: 'body evt_2' }]),
  ).rejects.toThrow();
  await expect(createPersonalKeys(2).openAll([about])).rejects.toThrow();
});

describe('the personal data of an event', () => {
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

  /** Seals an event, and returns it as the event store has it. */
  async function toStored(newEvent: NewEvent): Promise<StoredEvent> {
    const [sealed] = await createPersonalKeys(1).sealEvents([newEvent]);
    if (!sealed) throw new Error('sealing events keeps their number');
    const place = { stream: 'order-12', revision: 0, hash: '' };
    return { ...sealed, ...place, position: { commit: 1n, prepare: 1n } };
  }

  it('is sealed, unlike the other data, and opens in its own event', async () => {
    const stored = await toStored(event(ID, 'ItemsAdded'));
    expect(stored.data).toEqual({ subjectId: NOBODY, items: 1, personal: expect.any(String) });
    expect(JSON.stringify(stored.data)).not.toContain('oat');
    const [opened] = await createPersonalKeys(1).openEvents([stored]);
    expect(opened?.data).toEqual(event(ID, 'ItemsAdded').data);
  });

  it('opens neither in another event nor in one of another type', async () => {
    const stored = await toStored(event(ID, 'ItemsAdded'));
    for (const otherEvent of [event(OTHER_ID, 'ItemsAdded'), event(ID, 'ItemsRemoved')]) {
      const moved = { ...(await toStored(otherEvent)), data: stored.data };
      await expect(createPersonalKeys(1).openEvents([moved])).rejects.toThrow();
    }
  });

  it('stays null where an event has none', async () => {
    const plain = { ...event(ID, 'ItemsAdded'), data: { subjectId: NOBODY, personal: null } };
    expect(await createPersonalKeys(1).sealEvents([plain])).toEqual([plain]);
  });
});

describe('a personal key', () => {
  let now = 1_000;
  beforeEach(() => {
    jest.spyOn(performance, 'now').mockImplementation(() => now);
  });
  afterEach(() => {
    jest.restoreAllMocks();
  });

  /** Creates a query that takes this many milliseconds. */
  function createSlowRead(milliseconds: number) {
    const { purpose, getContext } = PERSONAL_KEYS_COLUMN;
    const wrapped = createKeyring(1).seal(purpose, Buffer.alloc(32, 9), getContext(5));
    return jest.fn(() => {
      now += milliseconds;
      return Promise.resolve([
        { subject_id: 5, wrapped, previous_wrapped: null, is_renewed: false },
      ]);
    });
  }

  it('is queried again five seconds after the last query began, however long that took', async () => {
    const keys = createPersonalKeys(1);
    const read = createSlowRead(1_500);
    expect((await keys.load([5], read)).get(5)).toEqual(Buffer.alloc(32, 9));
    now += 3_000;
    await keys.load([5], read);
    expect(read).toHaveBeenCalledTimes(1);
    now += 1_000;
    await keys.load([5], read);
    expect(read).toHaveBeenCalledTimes(2);
  });

  it('is refused after three queries that take longer than five seconds each', async () => {
    const read = createSlowRead(6_000);
    await expect(createPersonalKeys(1).load([5], read)).rejects.toThrow(UnavailableError);
    expect(read).toHaveBeenCalledTimes(3);
  });

  it('opens texts that it or the key before it sealed, and counts older ones as erased', async () => {
    const { purpose, getContext } = PERSONAL_KEYS_COLUMN;
    const [first, second, third] = [1, 2, 3].map((byte) => Buffer.alloc(32, byte));
    if (!first || !second || !third) throw new Error('there are three keys');
    const wrapped = (key: Buffer) => createKeyring(1).seal(purpose, key, getContext(5));
    const keys = createPersonalKeys(1);
    const text = (key: Buffer) => ({
      subjectId: 5,
      sealed: seal(key, Buffer.from('oat milk'), 'note'),
      context: 'note',
    });
    const renewal = { wrapped: wrapped(third), previous_wrapped: wrapped(second) };
    keys.remember(5, { ...renewal, is_renewed: true }, now);
    const plainTexts = await keys.openAll([first, second, third].map(text));
    expect(plainTexts.map((plain) => plain?.toString())).toEqual([
      undefined,
      'oat milk',
      'oat milk',
    ]);
  });
});
