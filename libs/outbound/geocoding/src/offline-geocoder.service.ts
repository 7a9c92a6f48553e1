import { Injectable } from '@nestjs/common';
import { Gazetteer } from './gazetteer.service.js';
import { Geocoder, type GeocoderAnswer } from './geocoder.js';
import { PlacesLoader } from './places-loader.service.js';

/** Asks nobody outside. */
@Injectable()
export class OfflineGeocoder extends Geocoder {
  readonly name = 'offline';

  constructor(
    private readonly gazetteer: Gazetteer,
    private readonly places: PlacesLoader,
  ) {
    super();
  }

  async find(address: string): Promise<GeocoderAnswer> {
    if (!this.places.ready()) return { kind: 'busy' };
    const found = await this.gazetteer.find(address);
    return found ? { kind: 'found', ...found } : { kind: 'not_found' };
  }
}
