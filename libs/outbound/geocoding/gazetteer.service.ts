import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import type { Coordinates } from '#loyalty/locations/location.events.js';
import type { GeocodedPlace } from './geocoder.js';
import { parseAddress, type ParsedAddress } from './address.js';
import { choosePlace, listPlaceKeys, type Place } from './place-choice.js';
import { PLACES } from './places-loader.service.js';

type PostcodeRow = Coordinates & { postcode: string; country: string; place: string };

const FIND_PLACES = {
  name: 'gazetteer_places',
  text: `
    select key, country, state, population, latitude, longitude from gazetteer_places
    where load_id = (select load_id from gazetteer_parts where part = '${PLACES}')
      and key = any ($1) and ($2::text[] is null or country = any ($2))`,
};

const FIND_POSTCODES = {
  name: 'gazetteer_postcodes',
  text: `
    select p.postcode, p.country, p.place, p.latitude, p.longitude
    from gazetteer_parts g
    join gazetteer_postcodes p on p.load_id = g.load_id and g.part = 'postcodes:' || p.country
    where p.postcode = any ($1) and ($2::text[] is null or p.country = any ($2))
    order by p.postcode, p.place`,
};

/** Looks up places and postcodes in the database. It knows no streets, so its results are too coarse for passes. */
@Injectable()
export class Gazetteer {
  constructor(private readonly pool: Pool) {}

  /** Finds the postcode, if postcodes were imported, or else the town. Null: neither is known. */
  async find(text: string): Promise<GeocodedPlace | null> {
    const address = parseAddress(text);
    return (await this.findPostcode(address)) ?? this.findPlace(address);
  }

  private async findPostcode({
    postcodes,
    readings,
  }: ParsedAddress): Promise<GeocodedPlace | null> {
    if (postcodes.length === 0) return null;
    const { rows } = await this.pool.query<PostcodeRow>({
      ...FIND_POSTCODES,
      values: [postcodes, listCountries(readings)],
    });
    if (rows.length === 0) return null;
    const names = new Set(listPlaceKeys(readings));
    // Other countries have the same postcodes.
    const [onlyCountry, ...otherCountries] = readings.every(({ isCertain }) => isCertain)
      ? new Set(readings.flatMap(({ scopes }) => scopes.map(({ country }) => country)))
      : [];
    for (const code of postcodes) {
      const candidates = rows.filter(({ postcode }) => postcode === code);
      const sameName = candidates.find(({ place }) => names.has(place));
      const best =
        sameName ?? (onlyCountry && otherCountries.length === 0 ? candidates[0] : undefined);
      if (best) {
        return { latitude: best.latitude, longitude: best.longitude, precision: 'postcode' };
      }
    }
    return null;
  }

  private async findPlace({ readings }: ParsedAddress): Promise<GeocodedPlace | null> {
    const keys = listPlaceKeys(readings);
    if (keys.length === 0) return null;
    const { rows } = await this.pool.query<Place>({
      ...FIND_PLACES,
      values: [keys, listCountries(readings)],
    });
    const best = choosePlace(readings, rows);
    return best ? { latitude: best.latitude, longitude: best.longitude, precision: 'city' } : null;
  }
}

/** Lists the countries of the readings. Null: any. */
function listCountries(readings: ParsedAddress['readings']): string[] | null {
  if (readings.some(({ scopes }) => scopes.length === 0)) return null;
  return [...new Set(readings.flatMap(({ scopes }) => scopes.map(({ country }) => country)))];
}
