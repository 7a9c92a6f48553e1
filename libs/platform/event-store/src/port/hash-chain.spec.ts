import { describe, expect, it } from '@jest/globals';
import type { NewEvent } from './event-store.js';
import { hashChain, hashEvent } from './hash-chain.js';

describe('the hash chain', () => {
  const meta = {
    accountId: 7,
    actor: { type: 'token' as const, id: 31 },
    channel: 'pos' as const,
    requestId: 'till-7.42',
    occurredAt: '2026-01-31T08:59:00.000Z',
    recordedAt: '2026-01-31T09:00:00.000Z',
  };
  const issued: NewEvent = {
    id: '0f0e0d0c-0b0a-4908-8706-050403020100',
    type: 'OrderPlaced',
    version: 1,
    data: { id: 12, accountId: 7, code: 'ÄB€', nested: { list: [1, 2.5, null, true] } },
    meta,
  };
  const earned: NewEvent = {
    id: '1f0e0d0c-0b0a-4908-8706-050403020100',
    type: 'ItemsAdded',
    version: 1,
    data: { subjectId: 3, items: 2, personal: null },
    meta: { ...meta, channel: 'api' },
  };
  const stream = 'order-12';

  /** Fixed: a change of what is hashed, or how, would break every history that there is. */
  it('has the hashes that histories have', () => {
    const heads = hashChain(stream, null, [issued, earned]);
    expect(heads.map(({ hash }) => hash)).toEqual([
      'd0813c9e646608b8e9ffc640b889ce701aefbada93f3b2f304e62791ac7b9960',
      '4c82466a9811d786e945a1066aeb027dcdf902ae94ada341431b8b587e1fe14a',
    ]);
  });

  it('is the same whether events are appended together or one by one', () => {
    const again: NewEvent = { ...earned, id: '2f0e0d0c-0b0a-4908-8706-050403020100' };
    const heads = hashChain(stream, null, [issued, earned, again]);
    expect(heads.map(({ revision }) => revision)).toEqual([0, 1, 2]);
    const [first] = hashChain(stream, null, [issued]);
    expect([first, ...hashChain(stream, first ?? null, [earned, again])]).toEqual(heads);
    expect(hashEvent(stream, first ?? null, earned)).toBe(heads[1]?.hash);
  });
});
