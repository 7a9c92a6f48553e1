import type { GeocoderServer } from '#kernel/geocoder-settings.js';
import type { Found } from './geocoder.js';
import { placeKey } from './place-key.js';

/** The precision of the best answer; null: it stands for more than a town. */
type Precision = Found['precision'] | null;

/** One kind of server: how it is asked, and what its best answer says. */
type Protocol = {
  urlOf: (server: GeocoderServer, address: string) => URL;
  /**
   * @returns null when nothing was found
   * @throws UnexpectedAnswerError
   */
  read: (body: unknown, address: string) => Found | null;
};

/** A server that speaks another protocol, or has failed with a 200. */
export class UnexpectedAnswerError extends Error {}

const nominatim: Protocol = {
  urlOf: ({ url, key }, q) => {
    return withParameters(`${url}/search`, {
      q,
      format: 'jsonv2',
      limit: '1',
      ...(key && { key }),
    });
  },
  read: (body, address) => {
    if (!Array.isArray(body)) throw new UnexpectedAnswerError('the answer is no list');
    const [best] = body as unknown[];
    if (best === undefined) return null;
    const { lat, lon, place_rank: rank, addresstype, type, display_name: name } = fieldsOf(best);
    const precision = nominatimPrecision(Number(rank), String(addresstype ?? type ?? ''));
    return found(
      lat,
      lon,
      checked(
        precision,
        address,
        String(name ?? '')
          .split(',')
          .slice(0, 2),
      ),
    );
  },
};

const photon: Protocol = {
  urlOf: ({ url, key }, q) => withParameters(`${url}/api`, { q, limit: '1', ...(key && { key }) }),
  read: (body, address) => {
    const best = bestFeature(body);
    if (!best) return null;
    const { type, osm_key: group, osm_value: value, housenumber } = best.properties;
    const isPostcode = group === 'place' && value === 'postcode';
    const precision = isPostcode ? 'postcode' : (PHOTON_TYPES[String(type)] ?? null);
    return found(...best.place, checked(precision, address, [housenumber]));
  },
};

const PHOTON_TYPES: Record<string, Precision> = {
  house: 'rooftop',
  street: 'street',
  locality: 'city',
  district: 'city',
  city: 'city',
};

const pelias: Protocol = {
  urlOf: ({ url, key }, text) => {
    return withParameters(`${url}/v1/search`, { text, size: '1', ...(key && { api_key: key }) });
  },
  read: (body, address) => {
    const best = bestFeature(body);
    if (!best) return null;
    const { layer, match_type: match, accuracy, housenumber } = best.properties;
    const known = PELIAS_LAYERS[String(layer)] ?? null;
    // Between two known houses, or in the middle of something.
    const isPoint = match !== 'interpolated' && accuracy !== 'centroid';
    const precision = known === 'rooftop' && !isPoint ? 'street' : known;
    return found(...best.place, checked(precision, address, [housenumber]));
  },
};

const PELIAS_LAYERS: Record<string, Precision> = {
  address: 'rooftop',
  venue: 'rooftop',
  street: 'street',
  postalcode: 'postcode',
  neighbourhood: 'city',
  borough: 'city',
  locality: 'city',
  localadmin: 'city',
};

export const PROTOCOLS: Record<GeocoderServer['protocol'], Protocol> = {
  nominatim,
  photon,
  pelias,
};

/** Towns that are states or districts of their own have the rank of those. */
const TOWNS = new Set(['city', 'town', 'village', 'municipality', 'hamlet', 'suburb', 'borough']);

/** Ranks of OpenStreetMap: 30 is a house, 26 and 27 are streets, from 13 on it is about a town, below are districts. */
function nominatimPrecision(rank: number, type: string): Precision {
  if (type === 'postcode') return 'postcode';
  if (rank >= 30) return 'rooftop';
  if (rank >= 26) return 'street';
  return rank >= 13 || TOWNS.has(type) ? 'city' : null;
}

/**
 * A server that does not know the house number answers with the next house or the shop's neighbour: that is good for the
 * street only.
 * @param about where the answer names its house number
 */
function checked(precision: Precision, address: string, about: unknown[]): Precision {
  if (precision !== 'rooftop') return precision;
  const asked = new Set(placeKey(address).split(' '));
  const numbers = about
    .flatMap((part) => placeKey(String(part ?? '')).split(' '))
    .filter((word) => /\d/.test(word));
  return numbers.some((number) => asked.has(number)) ? 'rooftop' : 'street';
}

function found(latitude: unknown, longitude: unknown, precision: Precision): Found | null {
  const [lat, lon] = [degrees(latitude, 90), degrees(longitude, 180)];
  return precision && { latitude: lat, longitude: lon, precision };
}

function degrees(given: unknown, most: number): number {
  const angle = typeof given === 'string' && given.trim() !== '' ? Number(given) : given;
  if (typeof angle !== 'number' || !(Math.abs(angle) <= most)) {
    throw new UnexpectedAnswerError('the answer has no coordinates');
  }
  return angle;
}

/** Of GeoJSON. `place` is latitude and longitude. */
function bestFeature(
  body: unknown,
): { properties: Record<string, unknown>; place: [unknown, unknown] } | undefined {
  const { features } = fieldsOf(body);
  if (!Array.isArray(features)) throw new UnexpectedAnswerError('the answer is no GeoJSON');
  const [best] = features as unknown[];
  if (best === undefined) return undefined;
  const { properties, geometry } = fieldsOf(best);
  const { coordinates } = fieldsOf(geometry);
  const [longitude, latitude] = Array.isArray(coordinates) ? (coordinates as unknown[]) : [];
  return { properties: fieldsOf(properties), place: [latitude, longitude] };
}

function fieldsOf(value: unknown): Record<string, unknown> {
  if (typeof value === 'object' && value !== null) return value as Record<string, unknown>;
  throw new UnexpectedAnswerError('the answer is not what was expected');
}

function withParameters(address: string, parameters: Record<string, string>): URL {
  const url = new URL(address);
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  return url;
}
