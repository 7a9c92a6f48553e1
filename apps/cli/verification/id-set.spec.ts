import { expect, it } from '@jest/globals';
import { IdSet } from './id-set.js';

it('has the ids that were added, and no others', () => {
  const added = [0, 1, 7, 8, 4_711, 8_191, 8_192, 100_000, 2 ** 24 + 3];
  const ids = new IdSet();
  for (const id of added) ids.add(id);
  for (const id of added) {
    expect(ids.has(id)).toBe(true);
    for (const neighbour of [id - 1, id + 1])
      expect([neighbour, ids.has(neighbour)]).toEqual([neighbour, added.includes(neighbour)]);
  }
});

it('keeps no ids that would take too much memory', () => {
  const ids = new IdSet();
  for (const id of [2 ** 31, 2 ** 32 + 1, Number.MAX_SAFE_INTEGER]) {
    ids.add(id);
    expect(ids.has(id)).toBe(false);
  }
  expect(ids.has(1)).toBe(false);
});
