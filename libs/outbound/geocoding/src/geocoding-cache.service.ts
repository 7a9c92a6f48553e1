import { createHash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import type { Found } from './geocoder.js';
import { placeKey } from './place-key.js';

/** What servers ask for: nobody is to be asked twice about one address. Maps change, though. */
const KEPT_DAYS = 90;
const FORGOTTEN_AT_ONCE = 1_000;

type Row = { latitude: number | null; longitude: number | null; precision: string | null };

/** What servers have answered. Two stores in one house share an answer. */
@Injectable()
export class GeocodingCache {
  constructor(private readonly pool: Pool) {}

  /** @returns null: it was not found; undefined: nobody has asked yet */
  async find(provider: string, address: string): Promise<Found | null | undefined> {
    const { rows } = await this.pool.query<Row>({
      name: 'geocoding_cache_find',
      text: `select latitude, longitude, precision from geocoding_cache
             where provider = $1 and query = $2 and queried_at > now() - interval '${KEPT_DAYS} days'`,
      values: [provider, hashOf(address)],
    });
    const [row] = rows;
    if (!row) return undefined;
    const { latitude, longitude, precision } = row;
    if (latitude === null || longitude === null || precision === null) return null;
    return { latitude, longitude, precision: precision as Found['precision'] };
  }

  async keep(provider: string, address: string, found: Found | null): Promise<void> {
    await this.pool.query({
      name: 'geocoding_cache_keep',
      text: `insert into geocoding_cache (provider, query, latitude, longitude, precision)
             values ($1, $2, $3, $4, $5)
             on conflict (provider, query) do update set
               latitude = excluded.latitude, longitude = excluded.longitude,
               precision = excluded.precision, queried_at = excluded.queried_at`,
      values: [
        provider,
        hashOf(address),
        found?.latitude ?? null,
        found?.longitude ?? null,
        found?.precision ?? null,
      ],
    });
  }

  /** @returns whether there may be more */
  async forgetOld(): Promise<boolean> {
    const { rowCount } = await this.pool.query({
      name: 'geocoding_cache_forget',
      text: `delete from geocoding_cache where (provider, query) in (
               select provider, query from geocoding_cache
               where queried_at <= now() - interval '${KEPT_DAYS} days' limit ${FORGOTTEN_AT_ONCE})`,
    });
    return rowCount === FORGOTTEN_AT_ONCE;
  }
}

/** The same for different case, spaces and commas. */
function hashOf(address: string): Buffer {
  return createHash('sha256').update(placeKey(address)).digest();
}
