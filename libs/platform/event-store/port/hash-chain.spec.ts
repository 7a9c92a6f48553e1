import { describe, expect, it } from '@jest/globals';
import type { NewEvent } from './event-store.js';
import { hashChain, hashEvent } from './hash-chain.js';

describe('hashChain', () => {
  const meta = {
    accountId: 7,
    actor: { type: 'token' as const, id: 31 },
    channel: 'pos' as const,
    requestId: 'till-7.42',
    occurredAt: '2026-01-31T08:59:00.000Z',
    recordedAt: '2026-01-31T09:00:00.000Z',
  };
  const orderPlaced: NewEvent = {
    id: '0f0e0d0c-0b0a-4908-8706-050403020100',
    type: 'OrderPlaced',
    version: 1,
    data: { id: 12, accountId: 7, code: 'ÄB€', nested: { list: [1, 2.5, null, true] } },
    meta,
  };
  const itemsAdded: NewEvent = {
    id: '1f0e0d0c-0b0a-4908-8706-050403020100',
    type: 'ItemsAdded',
    version: 1,
    data: { subjectId: 3, items: 2, personal: null },
    meta: { ...meta, channel: 'api' },
  };
  const stream = 'order-12';

  /** The hashes are fixed: hashing anything else, or otherwise, would break every existing history. */
  it('computes the hashes that existing histories have', () => {
    const heads = hashChain(stream, null, [orderPlaced, itemsAdded]);
    expect(heads.map(({ hash }) => hash)).toEqual([
      'd0813c9e646608b8e9ffc640b889ce701aefbada93f3b2f304e62791ac7b9960',
      '4c82466a9811d786e945a1066aeb027dcdf902ae94ada341431b8b587e1fe14a',
    ]);
  });

  it('computes the same hashes whether events are appended together or one by one', () => {
    const itemsAddedAgain: NewEvent = { ...itemsAdded, id: '2f0e0d0c-0b0a-4908-8706-050403020100' };
    const heads = hashChain(stream, null, [orderPlaced, itemsAdded, itemsAddedAgain]);
    expect(heads.map(({ revision }) => revision)).toEqual([0, 1, 2]);
    const [first] = hashChain(stream, null, [orderPlaced]);
    expect([first, ...hashChain(stream, first ?? null, [itemsAdded, itemsAddedAgain])]).toEqual(
      heads,
    );
    expect(hashEvent(stream, first ?? null, itemsAdded)).toBe(heads[1]?.hash);
  });
});
