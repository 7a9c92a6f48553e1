import { expect, it } from '@jest/globals';
import type { StoredEvent } from '#platform/event-store/port/event-store.js';
import { getEventLocationId, matchesSubject } from './event-subject.js';

it.each([
  ['no limit', { cardIds: null, locationIds: null }, { cardId: 4, locationId: 7 }, true],
  ['its card', { cardIds: [3, 4], locationIds: null }, { cardId: 4, locationId: 7 }, true],
  ['another card', { cardIds: [3], locationIds: null }, { cardId: 4, locationId: 7 }, false],
  ['its location', { cardIds: null, locationIds: [7] }, { cardId: 4, locationId: 7 }, true],
  ['another location', { cardIds: null, locationIds: [8] }, { cardId: 4, locationId: 7 }, false],
  [
    'its card at another location',
    { cardIds: [4], locationIds: [8] },
    { cardId: 4, locationId: 7 },
    false,
  ],
  [
    'any card, and it has none',
    { cardIds: [3], locationIds: [8] },
    { cardId: null, locationId: null },
    true,
  ],
  [
    'a location, and it has none',
    { cardIds: [4], locationIds: [8] },
    { cardId: 4, locationId: null },
    true,
  ],
])('matchesSubject decides on a limit to %s', (_case, filter, subject, isMatch) => {
  expect(matchesSubject(filter, subject)).toBe(isMatch);
});

it.each([
  ['card-4', {}, null],
  ['customer_card-12', { locationId: 7 }, 7],
  ['customer_card-12', { locationId: null }, null],
  ['location-7', {}, 7],
])('getEventLocationId of %s with %j is %s', (stream, data, id) => {
  expect(getEventLocationId({ stream, data } as StoredEvent)).toBe(id);
});
