import { Module } from '@nestjs/common';
import { Pool } from 'pg';
import { Config } from '#configuration/config.js';
import { VendorRateLimiter } from '#platform/database/vendor-rate-limiter.js';
import { RecordGeocodingHandler } from '#loyalty/locations/location.commands.js';
import { Gazetteer } from './gazetteer.service.js';
import { Geocoder } from './geocoder.js';
import { ServerGeocoder } from './geocoder-server.client.js';
import { GeocodingCache } from './geocoding-cache.service.js';
import { GeocodingQueue } from './geocoding-queue.service.js';
import { GeocodingSubscription } from './geocoding.subscription.js';
import { GeocodingWorker } from './geocoding-worker.service.js';
import { OfflineGeocoder } from './offline-geocoder.service.js';
import { PlacesLoader } from './places-loader.service.js';

/** Looks up addresses, in the dispatcher. */
@Module({
  providers: [
    GeocodingCache,
    GeocodingQueue,
    GeocodingSubscription,
    GeocodingWorker,
    RecordGeocodingHandler,
    { provide: Geocoder, inject: [Config, Pool], useFactory: createGeocoder },
  ],
  exports: [GeocodingSubscription],
})
export class GeocodingModule {}

/** Creates the geocoder that the settings name. */
export function createGeocoder({ geocoder, outboundProxy }: Config, pool: Pool): Geocoder {
  return typeof geocoder === 'string'
    ? new OfflineGeocoder(new Gazetteer(pool), new PlacesLoader(pool))
    : new ServerGeocoder(
        geocoder,
        new GeocodingCache(pool),
        new VendorRateLimiter(pool),
        outboundProxy,
      );
}
