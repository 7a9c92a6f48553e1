import { describe, expect, it } from '@jest/globals';
import type { GeocoderServer } from '#configuration/geocoder-settings.js';
import { PROTOCOLS, UnexpectedResponseError } from './geocoder-protocols.js';

const ADDRESS = 'Marktplatz 1, 20095 Hamburg';
const server = (protocol: GeocoderServer['protocol'], url: string): GeocoderServer => ({
  protocol,
  url,
  key: 'k&y',
  userAgent: 'Inkpad',
  requestsPerSecond: 1,
});
const buildUrl = (protocol: GeocoderServer['protocol'], url: string) =>
  PROTOCOLS[protocol].buildUrl(server(protocol, url), ADDRESS).href;

describe('the URL of a request', () => {
  it('follows each protocol, below the path of the server', () => {
    expect(buildUrl('nominatim', 'https://maps.example/v1')).toBe(
      'https://maps.example/v1/search?q=Marktplatz+1%2C+20095+Hamburg&format=jsonv2&limit=1&key=k%26y',
    );
    expect(buildUrl('photon', 'https://photon.example')).toBe(
      'https://photon.example/api?q=Marktplatz+1%2C+20095+Hamburg&limit=1&key=k%26y',
    );
    expect(buildUrl('pelias', 'https://pelias.example')).toBe(
      'https://pelias.example/v1/search?text=Marktplatz+1%2C+20095+Hamburg&size=1&api_key=k%26y',
    );
  });
});

describe('a response of Nominatim', () => {
  const parse = (fields: object) =>
    PROTOCOLS.nominatim.parse([{ lat: '53.5503', lon: '9.9929', ...fields }], ADDRESS);

  it.each([
    [{ place_rank: 30, display_name: '1, Marktplatz, Hamburg' }, 'rooftop'],
    [{ place_rank: 30, display_name: 'Café, 1, Marktplatz' }, 'rooftop'],
    [{ place_rank: 30, display_name: '11, Marktplatz, Hamburg' }, 'street'],
    [{ place_rank: 26 }, 'street'],
    [{ place_rank: 21, addresstype: 'postcode' }, 'postcode'],
    [{ place_rank: 16, addresstype: 'city' }, 'city'],
    [{ place_rank: 8, addresstype: 'city' }, 'city'],
  ])('with %j has the precision %s', (fields, precision) => {
    expect(parse(fields)).toEqual({ latitude: 53.5503, longitude: 9.9929, precision });
  });

  it('has no result for a country, or when empty', () => {
    expect(parse({ place_rank: 4, addresstype: 'country' })).toBeNull();
    expect(PROTOCOLS.nominatim.parse([], ADDRESS)).toBeNull();
  });

  it('is refused without coordinates', () => {
    for (const fields of [{ lat: 'north' }, { lat: '' }, { lon: '181' }, { lon: null }]) {
      expect(() => parse({ place_rank: 30, ...fields })).toThrow(UnexpectedResponseError);
    }
    for (const body of [{ error: 'x' }, null, 'text', [3]]) {
      expect(() => PROTOCOLS.nominatim.parse(body, ADDRESS)).toThrow(UnexpectedResponseError);
    }
  });
});

const geoJson = (properties: object, coordinates: unknown = [9.9929, 53.5503]) => ({
  type: 'FeatureCollection',
  features: [{ type: 'Feature', properties, geometry: { type: 'Point', coordinates } }],
});

describe('a response of Photon', () => {
  const parse = (properties: object) => PROTOCOLS.photon.parse(geoJson(properties), ADDRESS);

  it.each([
    [{ type: 'house', housenumber: '1' }, 'rooftop'],
    [{ type: 'house', housenumber: '3' }, 'street'],
    [{ type: 'street' }, 'street'],
    [{ type: 'other', osm_key: 'place', osm_value: 'postcode' }, 'postcode'],
    [{ type: 'district' }, 'city'],
  ])('with %j has the precision %s', (properties, precision) => {
    expect(parse(properties)).toEqual({ latitude: 53.5503, longitude: 9.9929, precision });
  });

  it('has no result for a county, or when empty', () => {
    expect(parse({ type: 'county' })).toBeNull();
    expect(PROTOCOLS.photon.parse({ features: [] }, ADDRESS)).toBeNull();
  });
});

describe('a response of Pelias', () => {
  const parse = (properties: object) => PROTOCOLS.pelias.parse(geoJson(properties), ADDRESS);
  const house = { layer: 'address', housenumber: '1', accuracy: 'point', match_type: 'exact' };

  it.each([
    [house, 'rooftop'],
    [{ ...house, match_type: 'interpolated' }, 'street'],
    [{ ...house, accuracy: 'centroid' }, 'street'],
    [{ ...house, housenumber: '3' }, 'street'],
    [{ layer: 'street' }, 'street'],
    [{ layer: 'postalcode' }, 'postcode'],
    [{ layer: 'locality', match_type: 'fallback' }, 'city'],
  ])('with %j has the precision %s', (properties, precision) => {
    expect(parse(properties)).toEqual({ latitude: 53.5503, longitude: 9.9929, precision });
  });

  it('has no result for a region, and is refused without coordinates', () => {
    expect(parse({ layer: 'region' })).toBeNull();
    for (const body of [geoJson(house, null), geoJson(house, [9]), { features: {} }, []]) {
      expect(() => PROTOCOLS.pelias.parse(body, ADDRESS)).toThrow(UnexpectedResponseError);
    }
  });
});
