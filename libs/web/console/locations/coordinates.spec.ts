import { expect, it } from '@jest/globals';
import { parseCoordinates } from './coordinates.js';

const COORDINATES = { latitude: 53.5503, longitude: 9.9929 };

it.each([
  ['53.5503', '9.9929'],
  [' 53,5503 ', '9,9929'],
  ['\u200E53.5503\u200E', '\uFEFF9.9929'],
  ['٥٣٫٥٥٠٣', '９．９９２９'.replace('．', '.')],
  ['\u202A53.5503, 9.9929\u202C', ''],
  ['53.5503, 9.9929', ''],
  ['', '53.5503 9.9929'],
  ['(53.5503; 9.9929)', ''],
  ['https://www.openstreetmap.org/#map=19/53.5503/9.9929', ''],
  ['https://www.openstreetmap.org/?mlat=53.5503&mlon=9.9929#map=12/1/2', ''],
  ['https://www.google.com/maps/place/X/@1.0,2.0,17z/data=!8m2!3d53.5503!4d9.9929', ''],
  ['https://www.google.com/maps/@53.5503,9.9929,17z', ''],
  ['https://maps.google.com/?q=53.5503%2C9.9929', ''],
  ['https://maps.apple.com/?ll=53.5503,9.9929&z=15', ''],
  ['geo:53.5503,9.9929?z=19', ''],
])('parseCoordinates parses %s and %s', (latitude, longitude) => {
  expect(parseCoordinates(latitude, longitude)).toEqual(COORDINATES);
});

it.each([
  ['', ''],
  ['53.5503', ''],
  ['north', 'east'],
  ['91', '0'],
  ['0', '-180.5'],
  ['https://maps.example/short', ''],
  [`${'1'.repeat(3_000)},2`, ''],
])('parseCoordinates returns undefined for %s and %s', (latitude, longitude) => {
  expect(parseCoordinates(latitude, longitude)).toBeUndefined();
});

it('parseCoordinates parses negative and zero coordinates', () => {
  expect(parseCoordinates('-33.8568', '151.2153')).toEqual({
    latitude: -33.8568,
    longitude: 151.2153,
  });
  expect(parseCoordinates('0', '0')).toEqual({ latitude: 0, longitude: 0 });
});
