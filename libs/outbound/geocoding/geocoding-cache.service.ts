import { createHash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import type { GeocodedPlace } from './geocoder.js';
import { toPlaceKey } from './place-key.js';

/** Public servers require that clients cache results. Maps change, though. */
const CACHE_DAYS = 90;
const DELETE_BATCH_SIZE = 1_000;

type CacheRow = { latitude: number | null; longitude: number | null; precision: string | null };

/** Caches the results of servers. Two stores in one house share a result. */
@Injectable()
export class GeocodingCache {
  constructor(private readonly pool: Pool) {}

  /** Finds a cached result. @returns null: the server did not know the address; undefined: there is no cached result */
  async find(provider: string, address: string): Promise<GeocodedPlace | null | undefined> {
    const { rows } = await this.pool.query<CacheRow>({
      name: 'geocoding_cache_find',
      text: `select latitude, longitude, precision from geocoding_cache
             where provider = $1 and query = $2 and queried_at > now() - interval '${CACHE_DAYS} days'`,
      values: [provider, hashAddress(address)],
    });
    const [row] = rows;
    if (!row) return undefined;
    const { latitude, longitude, precision } = row;
    if (latitude === null || longitude === null || precision === null) return null;
    return { latitude, longitude, precision: precision as GeocodedPlace['precision'] };
  }

  async save(provider: string, address: string, place: GeocodedPlace | null): Promise<void> {
    await this.pool.query({
      name: 'geocoding_cache_store',
      text: `insert into geocoding_cache (provider, query, latitude, longitude, precision)
             values ($1, $2, $3, $4, $5)
             on conflict (provider, query) do update set
               latitude = excluded.latitude, longitude = excluded.longitude,
               precision = excluded.precision, queried_at = excluded.queried_at`,
      values: [
        provider,
        hashAddress(address),
        place?.latitude ?? null,
        place?.longitude ?? null,
        place?.precision ?? null,
      ],
    });
  }

  /** Deletes a batch of expired results. @returns whether there may be more */
  async deleteExpired(): Promise<boolean> {
    const { rowCount } = await this.pool.query({
      name: 'geocoding_cache_forget',
      text: `delete from geocoding_cache where (provider, query) in (
               select provider, query from geocoding_cache
               where queried_at <= now() - interval '${CACHE_DAYS} days' limit ${DELETE_BATCH_SIZE})`,
    });
    return rowCount === DELETE_BATCH_SIZE;
  }
}

/** Hashes an address, ignoring case, spaces and commas. */
function hashAddress(address: string): Buffer {
  return createHash('sha256').update(toPlaceKey(address)).digest();
}
