import type { GeocoderServer } from '#configuration/geocoder-settings.js';
import type { GeocodedPlace } from './geocoder.js';
import { toPlaceKey } from './place-key.js';

/** The precision of the best result; null: it is coarser than a town. */
type Precision = GeocodedPlace['precision'] | null;

/** The protocol of a server: the URL of a request, and the parser of its best result. */
type Protocol = {
  buildUrl: (server: GeocoderServer, address: string) => URL;
  /**
   * @returns null when nothing was found
   * @throws UnexpectedResponseError
   */
  parse: (body: unknown, address: string) => GeocodedPlace | null;
};

/** The server uses another protocol, or has failed with a 200. */
export class UnexpectedResponseError extends Error {}

const nominatim: Protocol = {
  buildUrl: ({ url, key }, q) => {
    return withQuery(`${url}/search`, {
      q,
      format: 'jsonv2',
      limit: '1',
      ...(key && { key }),
    });
  },
  parse: (body, address) => {
    if (!Array.isArray(body)) throw new UnexpectedResponseError('the response is not a list');
    const [best] = body as unknown[];
    if (best === undefined) return null;
    const {
      lat,
      lon,
      place_rank: rank,
      addresstype,
      type,
      display_name: name,
    } = assertObject(best);
    const precision = parseNominatimPrecision(Number(rank), String(addresstype ?? type ?? ''));
    return toGeocodedPlace(
      lat,
      lon,
      verifyHouseNumber(
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
  buildUrl: ({ url, key }, q) => withQuery(`${url}/api`, { q, limit: '1', ...(key && { key }) }),
  parse: (body, address) => {
    const best = findBestFeature(body);
    if (!best) return null;
    const { type, osm_key: group, osm_value: value, housenumber } = best.properties;
    const isPostcode = group === 'place' && value === 'postcode';
    const precision = isPostcode ? 'postcode' : (PHOTON_TYPES[String(type)] ?? null);
    return toGeocodedPlace(...best.place, verifyHouseNumber(precision, address, [housenumber]));
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
  buildUrl: ({ url, key }, text) => {
    return withQuery(`${url}/v1/search`, { text, size: '1', ...(key && { api_key: key }) });
  },
  parse: (body, address) => {
    const best = findBestFeature(body);
    if (!best) return null;
    const { layer, match_type: match, accuracy, housenumber } = best.properties;
    const layerPrecision = PELIAS_LAYERS[String(layer)] ?? null;
    // Interpolated between two known houses, or the centre of an area.
    const isPoint = match !== 'interpolated' && accuracy !== 'centroid';
    const precision = layerPrecision === 'rooftop' && !isPoint ? 'street' : layerPrecision;
    return toGeocodedPlace(...best.place, verifyHouseNumber(precision, address, [housenumber]));
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

/** A town that is also a state or district has the rank of that. */
const TOWNS = new Set(['city', 'town', 'village', 'municipality', 'hamlet', 'suburb', 'borough']);

/**
 * Parses the rank of OpenStreetMap: 30 is a house, 26 and 27 are streets, from 13 on are towns, below are districts.
 */
function parseNominatimPrecision(rank: number, type: string): Precision {
  if (type === 'postcode') return 'postcode';
  if (rank >= 30) return 'rooftop';
  if (rank >= 26) return 'street';
  return rank >= 13 || TOWNS.has(type) ? 'city' : null;
}

/**
 * Verifies that the result has the house number of the address. A server that does not know it returns a neighbouring
 * house, which is only precise to the street.
 * @param responseParts the parts of the response that name its house number
 */
function verifyHouseNumber(
  precision: Precision,
  address: string,
  responseParts: unknown[],
): Precision {
  if (precision !== 'rooftop') return precision;
  const addressWords = new Set(toPlaceKey(address).split(' '));
  const numbers = responseParts
    .flatMap((part) => toPlaceKey(String(part ?? '')).split(' '))
    .filter((word) => /\d/.test(word));
  return numbers.some((number) => addressWords.has(number)) ? 'rooftop' : 'street';
}

function toGeocodedPlace(
  latitude: unknown,
  longitude: unknown,
  precision: Precision,
): GeocodedPlace | null {
  const [lat, lon] = [parseDegrees(latitude, 90), parseDegrees(longitude, 180)];
  return precision && { latitude: lat, longitude: lon, precision };
}

function parseDegrees(value: unknown, max: number): number {
  const angle = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  if (typeof angle !== 'number' || !(Math.abs(angle) <= max)) {
    throw new UnexpectedResponseError('the response has no coordinates');
  }
  return angle;
}

/** Finds the first feature of GeoJSON. `place` is latitude and longitude. */
function findBestFeature(
  body: unknown,
): { properties: Record<string, unknown>; place: [unknown, unknown] } | undefined {
  const { features } = assertObject(body);
  if (!Array.isArray(features)) throw new UnexpectedResponseError('the response is not GeoJSON');
  const [best] = features as unknown[];
  if (best === undefined) return undefined;
  const { properties, geometry } = assertObject(best);
  const { coordinates } = assertObject(geometry);
  const [longitude, latitude] = Array.isArray(coordinates) ? (coordinates as unknown[]) : [];
  return { properties: assertObject(properties), place: [latitude, longitude] };
}

function assertObject(value: unknown): Record<string, unknown> {
  if (typeof value === 'object' && value !== null) return value as Record<string, unknown>;
  throw new UnexpectedResponseError('the response has an unexpected structure');
}

function withQuery(address: string, parameters: Record<string, string>): URL {
  const url = new URL(address);
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  return url;
}
