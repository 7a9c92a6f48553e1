import type { Coordinates, GeocodedPrecision } from '#loyalty/locations/location.events.js';

export type GeocodedPlace = Coordinates & { precision: GeocodedPrecision };

/**
 * not_found: the geocoder does not know the address, and a retry would not help. failed: the request failed and is
 * retried later, at the earliest after `retryInMs`. busy: no request was sent, because of the rate limit or because the
 * process ends.
 */
export type GeocoderResponse =
  | ({ kind: 'found' } & GeocodedPlace)
  | { kind: 'not_found' }
  | { kind: 'failed'; error: string; retryInMs?: number }
  | { kind: 'busy' };

/** Looks up addresses, within this service or at a server. */
export abstract class Geocoder {
  /** Recorded in the history with the coordinates. */
  abstract readonly name: string;

  /** @param signal aborts when the process must end */
  abstract find(address: string, signal: AbortSignal): Promise<GeocoderResponse>;
}
