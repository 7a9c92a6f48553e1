import { expect, it } from '@jest/globals';
import { nextGeocodingInMs } from './geocoding-retry.js';

it('tries again for a day and a half, and later where the server asks for it', () => {
  const delays = [1, 2, 3, 4, 5, 6].map((attempts) => nextGeocodingInMs(attempts));
  expect(delays).toEqual([30, 120, 600, 3_600, 21_600, 86_400].map((seconds) => seconds * 1000));
  expect(nextGeocodingInMs(7)).toBeUndefined();
  expect(nextGeocodingInMs(1, 300_000)).toBe(300_000);
  expect(nextGeocodingInMs(1, 1e12)).toBe(86_400_000);
});
