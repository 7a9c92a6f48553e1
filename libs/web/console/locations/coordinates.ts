import { normalizeNumber } from '#platform/kernel/text.js';
import type { Coordinates } from '#loyalty/locations/location.events.js';

const NUMBER = String.raw`(-?\d{1,3}(?:\.\d{1,20})?)`;
/** The links of OpenStreetMap, Google Maps, Apple Maps and phones. */
const LINKS = [
  new RegExp(String.raw`!3d${NUMBER}!4d${NUMBER}`),
  new RegExp(String.raw`[?&]mlat=${NUMBER}&mlon=${NUMBER}`),
  new RegExp(String.raw`#map=\d+(?:\.\d+)?/${NUMBER}/${NUMBER}`),
  new RegExp(
    String.raw`[?&](?:q|query|ll|sll|center|destination)=${NUMBER}(?:,|%2C)\s*${NUMBER}`,
    'i',
  ),
  new RegExp(String.raw`@${NUMBER},${NUMBER}`),
  new RegExp(String.raw`^geo:${NUMBER},${NUMBER}`),
];
const MAX_LENGTH = 2_048;
/** Of both numbers with everything around them. */
const MAX_PAIR_LENGTH = 128;

/**
 * One number: degrees, or degrees with minutes and seconds, with a compass point on either side. O is none of them: it is
 * the east in German and the west in French and Spanish.
 */
const ONE =
  /^([NSEWZ])?\s*([+-]?\d{1,3}(?:[.,]\d{1,20})?)\s*(?:°\s*(?:(\d{1,2}(?:[.,]\d{1,20})?)\s*(?:'\s*(?:(\d{1,2}(?:[.,]\d{1,20})?)\s*(?:"|'')?\s*)?)?)?)?([NSEWZ])?$/i;
const SEPARATOR = /\s*[,;|/]\s*|\s+/g;

type Coordinate = { degrees: number; axis: 'latitude' | 'longitude' | null };

/**
 * Parses the two fields of a form: a number in each, or both numbers or the link of a map in one of them. Numbers have a
 * decimal point or comma.
 * @returns undefined if they are not coordinates
 */
export function parseCoordinates(latitude: string, longitude: string): Coordinates | undefined {
  const [first = '', second = ''] = [latitude, longitude].map(simplify);
  if (first.length > MAX_LENGTH || second.length > MAX_LENGTH) return undefined;
  const pair =
    first !== '' && second !== ''
      ? (combine(parseOne(first), parseOne(second)) ?? findPair(first) ?? findPair(second))
      : findPair(first + second);
  if (!pair) return undefined;
  return Math.abs(pair.latitude) <= 90 && Math.abs(pair.longitude) <= 180 ? pair : undefined;
}

/** Replaces the signs of typographers, and those of other scripts, by those of keyboards. */
function simplify(text: string): string {
  return normalizeNumber(text)
    .replace(/[−–]/g, '-')
    .replaceAll('٫', '.')
    .replaceAll('º', '°')
    .replace(/[’′]/g, "'")
    .replace(/[”″]/g, '"')
    .trim();
}

function findPair(text: string): Coordinates | undefined {
  for (const form of LINKS) {
    const [, latitude, longitude] = form.exec(text) ?? [];
    if (latitude !== undefined && longitude !== undefined) {
      return { latitude: Number(latitude), longitude: Number(longitude) };
    }
  }
  return splitPair(text.replace(/^\((.*)\)$/, '$1').trim());
}

/** Splits two numbers where only one place makes numbers of both sides. "53,55" is one number. */
function splitPair(text: string): Coordinates | undefined {
  if (text.length > MAX_PAIR_LENGTH || parseOne(text)) return undefined;
  const pairs = [...text.matchAll(SEPARATOR)].flatMap(({ 0: separator, index }) => {
    const left = parseOne(text.slice(0, index));
    const right = parseOne(text.slice(index + separator.length));
    const isAlike = (left?.axis === null) === (right?.axis === null);
    return (isAlike && combine(left, right)) || [];
  });
  return pairs.length === 1 ? pairs[0] : undefined;
}

/** Takes the first number for the latitude, unless compass points say otherwise. */
function combine(
  first: Coordinate | undefined,
  second: Coordinate | undefined,
): Coordinates | undefined {
  if (!first || !second) return undefined;
  const isTurned = first.axis === 'longitude' || second.axis === 'latitude';
  const [latitude, longitude] = isTurned ? [second, first] : [first, second];
  if (latitude.axis === 'longitude' || longitude.axis === 'latitude') return undefined;
  return { latitude: latitude.degrees, longitude: longitude.degrees };
}

function parseOne(text: string): Coordinate | undefined {
  const match = ONE.exec(text);
  if (!match) return undefined;
  const [, before, degrees = '', minutes = '0', seconds = '0', after] = match;
  if (before !== undefined && after !== undefined) return undefined;
  const [whole, ...parts] = [degrees, minutes, seconds].map((part) =>
    Number(part.replace(',', '.')),
  );
  if (whole === undefined || parts.some((part) => part >= 60)) return undefined;
  const [minute = 0, second = 0] = parts;
  const isNegative = degrees.startsWith('-');
  const point = (before ?? after)?.toUpperCase();
  if (point !== undefined && isNegative) return undefined;
  const size = Math.abs(whole) + minute / 60 + second / 3600;
  const isBelowZero = isNegative || (point !== undefined && 'SZW'.includes(point));
  return {
    degrees: isBelowZero && size > 0 ? -size : size,
    axis: point === undefined ? null : 'NSZ'.includes(point) ? 'latitude' : 'longitude',
  };
}
