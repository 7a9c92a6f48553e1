import { Injectable, Logger } from '@nestjs/common';
import { Pool } from 'pg';
import { Config } from '#configuration/config.js';
import { getErrorMessage } from '#platform/kernel/errors.js';
import { Gazetteer } from '#outbound/geocoding/gazetteer.service.js';
import { GeocodingCache } from '#outbound/geocoding/geocoding-cache.service.js';
import type { Coordinates } from '#loyalty/locations/location.events.js';
import type { Location } from '#loyalty/locations/location.js';

/**
 * Finds where an address lies, to compare it with a pin. It asks only the database: a page waits for no other server, and
 * what is not known there is not compared.
 */
@Injectable()
export class AddressPlaces {
  private readonly log = new Logger('location-pages');
  private readonly gazetteer: Gazetteer;
  private readonly cache: GeocodingCache;

  constructor(
    pool: Pool,
    private readonly config: Config,
  ) {
    this.gazetteer = new Gazetteer(pool);
    this.cache = new GeocodingCache(pool);
  }

  /** @returns undefined if it is not known, or cannot be looked up now */
  async find(location: Location): Promise<Coordinates | undefined> {
    const { latitude, longitude, precision, address } = location;
    if (precision !== 'manual' && latitude !== null && longitude !== null) {
      return { latitude, longitude };
    }
    const { geocoder } = this.config;
    if (geocoder === 'none') return undefined;
    try {
      const place =
        typeof geocoder === 'string' ? null : await this.cache.find(geocoder.protocol, address);
      return place ?? (await this.gazetteer.find(address)) ?? undefined;
    } catch (error) {
      // It is only a warning that is missing.
      this.log.warn(`an address could not be looked up: ${getErrorMessage(error)}`);
      return undefined;
    }
  }
}
