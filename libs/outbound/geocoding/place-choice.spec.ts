import { describe, expect, it } from '@jest/globals';
import { parseAddress } from './address.js';
import { choosePlace, listPlaceKeys, type Place } from './place-choice.js';

const PLACES = [
  createPlace('toronto', 'CA', 'ON', 2_794_356),
  createPlace('toronto', 'US', 'OH', 4_882),
  createPlace('ontario', 'US', 'CA', 175_265),
  createPlace('hamburg', 'DE', '04', 1_973_896),
  createPlace('altona', 'DE', '04', 276_000),
  createPlace('springs', 'US', 'NY', 6_592),
  createPlace('budapest', 'HU', '', 1_741_041),
  createPlace('new york', 'US', 'NY', 8_804_190),
  createPlace('st louis', 'US', 'MO', 301_578),
];

function createPlace(key: string, country: string, state: string, population: number): Place {
  return { key, country, state, population, latitude: 0, longitude: 0 };
}

function choose(text: string): string | undefined {
  const { readings } = parseAddress(text);
  const keys = new Set(listPlaceKeys(readings));
  const place = choosePlace(
    readings,
    PLACES.filter(({ key }) => keys.has(key)),
  );
  return place && `${place.key} ${place.country}`;
}

describe('choosePlace', () => {
  it.each([
    ['Toronto, Ontario', 'toronto CA'],
    ['Toronto, OH', 'toronto US'],
    ['Toronto, CA', 'toronto CA'],
    ['303 E B St, Ontario, CA', 'ontario US'],
    ['1 Main St, Toronto', 'toronto CA'],
    ['Kai 2, Hamburg-Altona', 'altona DE'],
    ['1051 Budapest, Széchenyi tér 5.', 'budapest HU'],
    ['1051 Budapest Széchenyi tér 5.', 'budapest HU'],
    ['350 5th Ave New York NY 10118', 'new york US'],
    ['350 5th Ave, New York', 'new york US'],
    ['1200 Market St, Saint Louis, Missouri', 'st louis US'],
    ['Centrum, Hamburg', 'hamburg DE'],
    ['Hamburg, Centrum, Kai 2', 'hamburg DE'],
  ])('finds the town of %s', (text, town) => {
    expect(choose(text)).toBe(town);
  });

  it.each([
    'Xyzzyville, Ontario',
    'Xyzzyville, Ontario, Canada',
    'Toronto, Texas',
    'Hamburg, Ontario',
    'Hamburg 1, Xyzzyville, Germany',
    'Hamburg Street 1',
    '1600 Toronto Avenue, Xyzzyville',
    'Xyzzyville Springs, NY',
    'Springs, Co. Kerry',
    'Springs, Xyzzyland',
    'Xyzzyville, New York',
    '1 Main St, Ontario',
  ])('finds no town in %s', (text) => {
    expect(choose(text)).toBeUndefined();
  });
});
