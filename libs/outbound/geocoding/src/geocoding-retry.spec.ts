import { expect, it } from '@jest/globals';
import { getGeocodingDelayMs } from './geocoding-retry.js';

it('getGeocodingDelayMs returns six growing delays, or a longer one that the server requests', () => {
  const delays = [1, 2, 3, 4, 5, 6].map((attempts) => getGeocodingDelayMs(attempts));
  expect(delays).toEqual([30, 120, 600, 3_600, 21_600, 86_400].map((seconds) => seconds * 1000));
  expect(getGeocodingDelayMs(7)).toBeUndefined();
  expect(getGeocodingDelayMs(1, 300_000)).toBe(300_000);
  expect(getGeocodingDelayMs(1, 1e12)).toBe(86_400_000);
});
