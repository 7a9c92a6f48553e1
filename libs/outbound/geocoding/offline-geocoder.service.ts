import { Injectable } from '@nestjs/common';
import { Gazetteer } from './gazetteer.service.js';
import { Geocoder, type GeocoderResponse } from './geocoder.js';
import { PlacesLoader } from './places-loader.service.js';

/** Looks up addresses in the database, without requests to other servers. */
@Injectable()
export class OfflineGeocoder extends Geocoder {
  readonly name = 'offline';

  constructor(
    private readonly gazetteer: Gazetteer,
    private readonly places: PlacesLoader,
  ) {
    super();
  }

  async find(address: string): Promise<GeocoderResponse> {
    if (!this.places.ensureLoaded()) return { kind: 'busy' };
    const place = await this.gazetteer.find(address);
    return place ? { kind: 'found', ...place } : { kind: 'not_found' };
  }
}
