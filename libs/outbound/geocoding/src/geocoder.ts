import type { Coordinates, GeocodedPrecision } from '#locations/location.events.js';

export type GeocodedPlace = Coordinates & { precision: GeocodedPrecision };

/**
 * not_found: the geocoder knows no such address, and asking again would not help. failed: it was asked in vain, and is
 * asked again later, after the given time at the earliest if it named one. busy: it was not asked at all, because others
 * come first or the process ends.
 */
export type GeocoderResponse =
  | ({ kind: 'found' } & GeocodedPlace)
  | { kind: 'not_found' }
  | { kind: 'failed'; error: string; retryInMs?: number }
  | { kind: 'busy' };

/** Looks up addresses, within this service or at a server. */
export abstract class Geocoder {
  /** Stands in the history beside the coordinates. */
  abstract readonly name: string;

  /** @param signal aborts when the process must end */
  abstract find(address: string, signal: AbortSignal): Promise<GeocoderResponse>;
}
