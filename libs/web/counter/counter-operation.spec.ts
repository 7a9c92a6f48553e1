import { describe, expect, it } from '@jest/globals';
import { MAX_OPERATIONS, readFormOperation, readId, readOperations } from './counter-operation.js';

const NOW = new Date('2026-11-26T13:00:00.000Z');
const stamp = { operation: 'stamp', code: 'K7QX2M9P', stamps: 1, external_ref: 'counter-1' };

describe('the operations of a request', () => {
  it('are taken with the fields that a batch has, and no others', () => {
    const input = { ...stamp, asks: true, occurred_at: '2026-11-26T12:00:00Z', note: 'x' };
    expect(readOperations({ operations: [input] }, NOW)).toEqual([
      { ...stamp, asks: true, occurred_at: '2026-11-26T12:00:00.000Z' },
    ]);
  });

  it.each([
    null,
    {},
    { operations: 'stamp' },
    { operations: [null] },
    { operations: [{ ...stamp, external_ref: 7 }] },
    { operations: Array.from({ length: MAX_OPERATIONS + 1 }, () => stamp) },
  ])('are refused as %j', (body) => {
    expect(readOperations(body, NOW)).toBeUndefined();
  });

  it.each([
    ['an hour ahead', '2026-11-26T14:00:00Z', '2026-11-26T13:50:00Z', '2026-11-26T12:50:00.000Z'],
    ['a day behind', '2026-11-25T13:00:00Z', '2026-11-25T12:50:00Z', '2026-11-26T12:50:00.000Z'],
    ['right', '2026-11-26T12:59:55Z', '2026-11-26T12:50:00Z', '2026-11-26T12:50:00.000Z'],
    ['set back since', '2026-11-26T13:00:00Z', '2026-11-26T13:30:00Z', '2026-11-26T13:00:00.000Z'],
  ])('have the right time from a phone whose clock is %s', (_, sent_at, occurred_at, at) => {
    const operations = [{ ...stamp, occurred_at }];
    expect(readOperations({ operations, sent_at }, NOW)?.[0]?.occurred_at).toBe(at);
  });

  it('may say with which session they were made, and that somebody has confirmed them', () => {
    const input = { ...stamp, session_id: 7, is_confirmed: true };
    const [read] =
      readOperations({ operations: [input, { ...input, session_id: '7' }] }, NOW) ?? [];
    expect(read).toEqual({ ...input, asks: false });
  });

  it('are of now where the two times are further apart than a time can be', () => {
    const operations = [{ ...stamp, occurred_at: '-271821-04-20T00:00:00Z' }];
    const read = readOperations({ operations, sent_at: '+275760-09-13T00:00:00Z' }, NOW);
    expect(read).toEqual([{ ...stamp, asks: false }]);
  });

  it('leave a value of another type to the batch, which refuses the operation', () => {
    const operations = [{ ...stamp, stamps: '1', code: 4, occurred_at: 'noon' }];
    expect(readOperations({ operations }, NOW)).toEqual([
      { operation: 'stamp', external_ref: 'counter-1', asks: false },
    ]);
  });
});

describe('the operation of a form', () => {
  it('stamps a code once, after a question', () => {
    const form = { code: 'k7qx2m9p', external_ref: 'a' };
    expect(readFormOperation('stamp', form, () => 'new')).toEqual({
      operation: 'stamp',
      code: 'k7qx2m9p',
      stamps: 1,
      external_ref: 'a',
      asks: true,
    });
  });

  it('stamps a card without a question once somebody chose to add another', () => {
    const form = { customer_card_id: '7', again: 'yes' };
    expect(readFormOperation('stamp', form, () => 'new')).toMatchObject({
      customer_card_id: 7,
      external_ref: 'new',
      asks: false,
    });
  });

  it('redeems a reward', () => {
    const form = { customer_card_id: '7', reward_id: '3', external_ref: 'b' };
    expect(readFormOperation('redeem', form, () => 'new')).toMatchObject({
      reward_id: 3,
      asks: false,
    });
  });

  it.each([undefined, '', '-1', '1.5', '1e3', '9'.repeat(20)])('has no id in %p', (text) => {
    expect(readId(text)).toBe(0);
  });
});
