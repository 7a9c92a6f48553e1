import { trimSlashes } from '#platform/kernel/platform-config.js';
import { VERSION } from '#platform/kernel/version.js';
import type { Settings } from './settings.js';

/** A geocoding server. */
export type GeocoderServer = {
  protocol: 'nominatim' | 'photon' | 'pelias';
  /** Without a trailing slash. */
  url: string;
  key: string | null;
  userAgent: string;
  /** For all processes together. */
  requestsPerSecond: number;
};

/** offline: uses the places in the database. none: addresses stay pending. */
export type GeocoderChoice = 'offline' | 'none' | GeocoderServer;

/** OpenStreetMap's public server blocks clients without a contact, and everybody behind the same address. */
const NEEDS_CONTACT = /(^|\.)openstreetmap\.org$/;

export function readGeocoder(settings: Settings): GeocoderChoice {
  const { GEOCODER: protocol, GEOCODER_URL: url, GEOCODER_CONTACT: contact } = settings;
  if (protocol === 'offline' || protocol === 'none') return protocol;
  return {
    protocol,
    url: trimSlashes(url ?? ''),
    key: settings.GEOCODER_KEY ?? null,
    userAgent: `Inkpad/${VERSION}${contact === undefined ? '' : ` (${contact})`}`,
    requestsPerSecond: settings.GEOCODER_REQUESTS_PER_SECOND,
  };
}

/** Validates geocoder settings that depend on each other. */
export function findGeocoderErrors(environment: Record<string, string | undefined>): string[] {
  const {
    GEOCODER: protocol = 'offline',
    GEOCODER_URL: url,
    GEOCODER_CONTACT: contact,
  } = environment;
  const isServer = protocol !== 'offline' && protocol !== 'none';
  if (!isServer) {
    return ['GEOCODER_URL', 'GEOCODER_KEY']
      .filter((name) => environment[name] !== undefined)
      .map((name) => `${name}: needs GEOCODER, one of nominatim, photon, pelias`);
  }
  if (url === undefined)
    return [`GEOCODER: ${protocol} needs GEOCODER_URL, the address of its server`];
  const isPublic = URL.canParse(url) && NEEDS_CONTACT.test(new URL(url).hostname);
  return isPublic && contact === undefined
    ? ['GEOCODER_CONTACT: is required by this server: an e-mail address or web page of yours']
    : [];
}
