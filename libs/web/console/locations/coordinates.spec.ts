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
  ['53.5503,9.9929', ''],
  ['53,5503 9,9929', ''],
  ['53,5503; 9,9929', ''],
  ['53,5503, 9,9929', ''],
  ['53,5503,9,9929', ''],
  ['', '53,5503 / 9,9929'],
  ['+53,5503', '+9,9929'],
  ['53,5503°', '9,9929°'],
  ['53,5503° N', '9,9929° E'],
  ['N53,5503', 'E9,9929'],
  ['9,9929 E; 53,5503 N', ''],
  ['53.5503, 9.9929', '53.5503, 9.9929'],
  ['53.5503, 9.9929', '9.9929'],
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

it.each([
  ['53,55', '9,99', 53.55, 9.99],
  ['53,550', '9,993', 53.55, 9.993],
  ['53,5', '9', 53.5, 9],
  ['53', '9,9', 53, 9.9],
  ['53', '9', 53, 9],
  ['48,8566', '2,3522', 48.8566, 2.3522],
  ['40,41', '-3,70', 40.41, -3.7],
  ['40,41', '−3,70', 40.41, -3.7],
  ['52,37 4,89', '', 52.37, 4.89],
  ['52,37, 4,89', '', 52.37, 4.89],
  ['52,37;4,89', '', 52.37, 4.89],
  ['52,37,4,89', '', 52.37, 4.89],
  ['40,41 -3,70', '', 40.41, -3.7],
  ['40.41,-3.70', '', 40.41, -3.7],
  ['40,41° N, 3,70° W', '', 40.41, -3.7],
  ['33,86 Z', '151,21 E', -33.86, 151.21],
  ['53, 9', '', 53, 9],
  ['53 9', '', 53, 9],
  [`53°30'36"N 9°30'00"E`, '', 53.51, 9.5],
  ['53° 30′ 36,0″ N, 9° 30′ 0″ E', '', 53.51, 9.5],
  [`53° 30,6' N`, `9° 30,0' E`, 53.51, 9.5],
  ['N 53° 30.600 E 009° 30.000', '', 53.51, 9.5],
])('parseCoordinates reads the notation of %s and %s', (first, second, latitude, longitude) => {
  const parsed = parseCoordinates(first, second);
  expect(parsed?.latitude).toBeCloseTo(latitude, 9);
  expect(parsed?.longitude).toBeCloseTo(longitude, 9);
});

it.each([
  // One number with a decimal comma, or several ways to read it.
  ['53,55', ''],
  ['', '9,99'],
  ['53,55,9', ''],
  ['53,55', 'east'],
  // The east or the west.
  ['53,55 N', '9,99 O'],
  ['53,55 N', '9,99 N'],
  ['-53,55 N', '9,99'],
  ["53°61'", '9'],
  ['91,5', '9,99'],
  ['53,55', '180,1'],
])('parseCoordinates refuses %s and %s', (latitude, longitude) => {
  expect(parseCoordinates(latitude, longitude)).toBeUndefined();
});

it('parseCoordinates parses negative and zero coordinates', () => {
  expect(parseCoordinates('-33.8568', '151.2153')).toEqual({
    latitude: -33.8568,
    longitude: 151.2153,
  });
  expect(parseCoordinates('0', '0')).toEqual({ latitude: 0, longitude: 0 });
});
