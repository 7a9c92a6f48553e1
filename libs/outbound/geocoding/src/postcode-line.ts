import { placeKey } from './place-key.js';

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
 * A line of GeoNames' postcode files: country, postcode, place, three levels of states with their codes, latitude,
 * longitude, accuracy, separated by tabs.
 * @returns undefined when it is none
 */
export function postcodeOf(line: string): Postcode | undefined {
  const fields = line.split('\t');
  const [country = '', code = '', name = ''] = fields;
  const [latitude, longitude] = [degrees(fields[9], 90), degrees(fields[10], 180)];
  const postcode = code.toUpperCase().replaceAll(/[^A-Z0-9]/g, '');
  const fits = fields.length >= 11 && /^[A-Z]{2}$/.test(country) && postcode !== '';
  if (!fits || latitude === undefined || longitude === undefined) return undefined;
  return { country, postcode, place: placeKey(name), latitude, longitude };
}

function degrees(text: string | undefined, most: number): number | undefined {
  const angle = Number(text);
  return text && Math.abs(angle) <= most ? angle : undefined;
}
