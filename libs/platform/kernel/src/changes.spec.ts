import { describe, expect, it } from '@jest/globals';
import { findChanges } from './changes.js';

describe('the changes of a record', () => {
  const before = { name: 'Till', events: ['item.added'], limit: null as number | null };

  it.each([
    ['nothing', {}, {}],
    ['a text', { name: 'Back office' }, { name: { from: 'Till', to: 'Back office' } }],
    ['from nothing', { limit: 600 }, { limit: { from: null, to: 600 } }],
    ['a list that is equal', { events: ['item.added'] }, {}],
    ['a list', { events: ['*'] }, { events: { from: ['item.added'], to: ['*'] } }],
    [
      'several fields',
      { name: '', events: [] },
      { name: { from: 'Till', to: '' }, events: { from: ['item.added'], to: [] } },
    ],
  ])('are named with their values before and after: %s', (_, after, changes) => {
    expect(findChanges(before, { ...before, ...after })).toEqual(changes);
  });
});
