import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import type { Coordinates } from '#locations/location.events.js';
import type { Found } from './geocoder.js';
import { readAddress, withoutGuess, type Address } from './address.js';
import { PLACES } from './places-loader.service.js';

type PlaceRow = Coordinates & { key: string; state: string; population: number };
type PostcodeRow = Coordinates & { postcode: string; place: string };

const FIND_PLACES = {
  name: 'gazetteer_places',
  text: `
    select key, state, population, latitude, longitude from gazetteer_places
    where load_id = (select load_id from gazetteer_parts where part = '${PLACES}')
      and key = any ($1) and ($2::text is null or country = $2)`,
};

const FIND_POSTCODES = {
  name: 'gazetteer_postcodes',
  text: `
    select p.postcode, p.place, p.latitude, p.longitude
    from gazetteer_parts g
    join gazetteer_postcodes p on p.load_id = g.load_id and g.part = 'postcodes:' || p.country
    where p.postcode = any ($1) and ($2::text is null or p.country = $2)
    order by p.postcode, p.place`,
};

/** Places and postcodes in the database. It knows no streets: nothing it finds is good enough for a pass. */
@Injectable()
export class Gazetteer {
  constructor(private readonly pool: Pool) {}

  /** The postcode where they were imported, or else the town. Null: neither is known. */
  async find(text: string): Promise<Found | null> {
    const address = readAddress(text);
    const found = await this.search(address);
    return found ?? (address.countryIsGuess ? this.search(withoutGuess(address)) : null);
  }

  private async search(address: Address): Promise<Found | null> {
    return (await this.postcode(address)) ?? this.place(address);
  }

  private async postcode({ country, postcodes, places }: Address): Promise<Found | null> {
    if (postcodes.length === 0) return null;
    const { rows } = await this.pool.query<PostcodeRow>({
      ...FIND_POSTCODES,
      values: [postcodes, country],
    });
    for (const code of postcodes) {
      const known = rows.filter(({ postcode }) => postcode === code);
      const named = known.find(({ place }) => places.includes(place));
      // Other countries have the same numbers.
      const best = named ?? (country === null ? undefined : known[0]);
      if (best) {
        return { latitude: best.latitude, longitude: best.longitude, precision: 'postcode' };
      }
    }
    return null;
  }

  private async place({ country, places, states }: Address): Promise<Found | null> {
    if (places.length === 0) return null;
    const { rows } = await this.pool.query<PlaceRow>({ ...FIND_PLACES, values: [places, country] });
    for (const name of places) {
      const known = rows
        .filter(({ key }) => key === name)
        .sort((a, b) => b.population - a.population);
      const best = known.find(({ state }) => states.includes(state)) ?? known[0];
      if (best) return { latitude: best.latitude, longitude: best.longitude, precision: 'city' };
    }
    return null;
  }
}
