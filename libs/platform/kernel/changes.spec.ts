import { describe, expect, it } from '@jest/globals';
import { findChanges, pickChanges } from './changes.js';

describe('findChanges', () => {
  const before = { name: 'Till', events: ['item.added'], limit: null as number | null };

  it.each([
    ['nothing for equal records', {}, {}],
    [
      'both values of a text',
      { name: 'Back office' },
      { name: { from: 'Till', to: 'Back office' } },
    ],
    ['both values of a field that was null', { limit: 600 }, { limit: { from: null, to: 600 } }],
    ['nothing for an equal list', { events: ['item.added'] }, {}],
    ['both values of a list', { events: ['*'] }, { events: { from: ['item.added'], to: ['*'] } }],
    [
      'both values of each of several fields',
      { name: '', events: [] },
      { name: { from: 'Till', to: '' }, events: { from: ['item.added'], to: [] } },
    ],
  ])('returns %s', (_, after, changes) => {
    expect(findChanges(before, { ...before, ...after })).toEqual(changes);
  });
});

it('pickChanges picks the fields that differ, and nothing when none does', () => {
  const record = { name: 'Till', events: ['item.added'], limit: null as number | null };
  const { events } = record;
  expect(pickChanges(record, { name: 'Till', events: [...events], limit: 3 })).toEqual({
    limit: 3,
  });
  expect(pickChanges(record, { events: [...events] })).toBeUndefined();
  expect(pickChanges(record, {})).toBeUndefined();
  expect(pickChanges({ position: 0 }, { position: -0 })).toBeUndefined();
});
