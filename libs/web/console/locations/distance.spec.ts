import { expect, it } from '@jest/globals';
import { formatDistance, isFar, measureDistance } from './distance.js';

const BERLIN = { latitude: 52.52, longitude: 13.405 };
const KARLSRUHE = { latitude: 49.0069, longitude: 8.4037 };

it('measureDistance measures along the ground', () => {
  expect(measureDistance(BERLIN, KARLSRUHE)).toBeCloseTo(526, -1);
  expect(measureDistance(BERLIN, BERLIN)).toBe(0);
  const [west, east] = [179.9, -179.9].map((longitude) => ({ latitude: 0, longitude }));
  expect(measureDistance(west ?? BERLIN, east ?? BERLIN)).toBeCloseTo(22.2, 1);
});

it('isFar accepts what lies within a large town', () => {
  expect([29, 31].map(isFar)).toEqual([false, true]);
});

it('formatDistance formats whole kilometres in the language', () => {
  expect(formatDistance(1525.4, 'de')).toBe('1.525 km');
});
