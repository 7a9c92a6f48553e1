import { normalizeNumber } from '#platform/kernel/text.js';
import type { Coordinates } from '#loyalty/locations/location.events.js';

const NUMBER = String.raw`(-?\d{1,3}(?:\.\d{1,20})?)`;
/** The formats of OpenStreetMap, Google Maps, Apple Maps and phones. */
const FORMS = [
  new RegExp(String.raw`!3d${NUMBER}!4d${NUMBER}`),
  new RegExp(String.raw`[?&]mlat=${NUMBER}&mlon=${NUMBER}`),
  new RegExp(String.raw`#map=\d+(?:\.\d+)?/${NUMBER}/${NUMBER}`),
  new RegExp(
    String.raw`[?&](?:q|query|ll|sll|center|destination)=${NUMBER}(?:,|%2C)\s*${NUMBER}`,
    'i',
  ),
  new RegExp(String.raw`@${NUMBER},${NUMBER}`),
  new RegExp(String.raw`^geo:${NUMBER},${NUMBER}`),
  new RegExp(String.raw`^\(?${NUMBER}°?\s*[,;\s]\s*${NUMBER}°?\)?$`),
];
const MAX_LENGTH = 2_048;

/**
 * Parses the two fields of a form: two numbers, or both numbers or the link of a map in either field.
 * @returns undefined if they are not coordinates
 */
export function parseCoordinates(latitude: string, longitude: string): Coordinates | undefined {
  const pasted = [latitude, longitude].map(findPair).find((pair) => pair !== undefined);
  const [lat, lon] = pasted ?? [parseDecimal(latitude), parseDecimal(longitude)];
  if (lat === undefined || lon === undefined) return undefined;
  return Math.abs(lat) <= 90 && Math.abs(lon) <= 180
    ? { latitude: lat, longitude: lon }
    : undefined;
}

function findPair(text: string): [number, number] | undefined {
  const plain = normalizeNumber(text);
  if (plain.length > MAX_LENGTH) return undefined;
  for (const form of FORMS) {
    const [, lat, lon] = form.exec(plain) ?? [];
    if (lat !== undefined && lon !== undefined) return [Number(lat), Number(lon)];
  }
  return undefined;
}

/** Parses a decimal number with a point or a comma. */
function parseDecimal(text: string): number | undefined {
  const plain = normalizeNumber(text).replace(/[,٫]/, '.');
  return /^[+-]?\d{1,3}(\.\d{1,20})?$/.test(plain) ? Number(plain) : undefined;
}
