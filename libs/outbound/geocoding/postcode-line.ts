import { toPlaceKey } from './place-key.js';

export type Postcode = {
  country: string;
  /** Without spaces and hyphens. */
  postcode: string;
  /** The key of the place's name. */
  place: string;
  latitude: number;
  longitude: number;
};

/**
 * Parses a line of GeoNames' postcode files: country, postcode, place, three levels of states with their codes,
 * latitude, longitude, accuracy, separated by tabs.
 * @returns undefined for any other line
 */
export function parsePostcodeLine(line: string): Postcode | undefined {
  const fields = line.split('\t');
  const [country = '', code = '', name = ''] = fields;
  const [latitude, longitude] = [parseCoordinate(fields[9], 90), parseCoordinate(fields[10], 180)];
  const postcode = code.toUpperCase().replaceAll(/[^A-Z0-9]/g, '');
  const isValid = fields.length >= 11 && /^[A-Z]{2}$/.test(country) && postcode !== '';
  if (!isValid || latitude === undefined || longitude === undefined) return undefined;
  return { country, postcode, place: toPlaceKey(name), latitude, longitude };
}

function parseCoordinate(text: string | undefined, max: number): number | undefined {
  const degrees = Number(text);
  return text && Math.abs(degrees) <= max ? degrees : undefined;
}
