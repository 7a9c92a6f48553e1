import type { EventTable } from '#platform/kernel/aggregate.js';

export type LocationAttributes = { name: string; address: string };

/** Degrees, north and east positive. */
export type Coordinates = { latitude: number; longitude: number };

/** The precision of a geocoder's coordinates: a building, a street, a postcode area or a town. */
export type GeocodedPrecision = 'rooftop' | 'street' | 'postcode' | 'city';

export type LocationCreated = {
  type: 'LocationCreated';
  data: { id: number; accountId: number } & LocationAttributes;
};
/** A changed address invalidates the coordinates. */
export type LocationUpdated = { type: 'LocationUpdated'; data: Partial<LocationAttributes> };
export type LocationDeleted = { type: 'LocationDeleted'; data: Record<string, never> };
/** Somebody has said where exactly the shop is. */
export type LocationPinned = { type: 'LocationPinned'; data: Coordinates };
/** The pin is gone, and the address is to be geocoded again. */
export type LocationUnpinned = { type: 'LocationUnpinned'; data: Record<string, never> };
/** The address was found; `provider` says by which geocoder. */
export type LocationGeocoded = {
  type: 'LocationGeocoded';
  data: Coordinates & { precision: GeocodedPrecision; provider: string };
};
/** The geocoder does not know the address, or could not be asked for too long. */
export type LocationNotGeocoded = {
  type: 'LocationNotGeocoded';
  data: { status: 'not_found' | 'failed'; provider: string };
};

export type LocationEvent =
  | LocationCreated
  | LocationUpdated
  | LocationDeleted
  | LocationPinned
  | LocationUnpinned
  | LocationGeocoded
  | LocationNotGeocoded;

export const locationEvents = {
  LocationCreated: { name: 'location.created', publishedAs: 'location.created' },
  LocationUpdated: { name: 'location.updated', publishedAs: 'location.updated' },
  LocationDeleted: { name: 'location.deleted', publishedAs: 'location.deleted' },
  LocationPinned: { name: 'location.pinned', publishedAs: 'location.updated' },
  LocationUnpinned: { name: 'location.unpinned', publishedAs: 'location.updated' },
  LocationGeocoded: { name: 'location.geocoded', publishedAs: 'location.updated' },
  LocationNotGeocoded: { name: 'location.not_geocoded', publishedAs: 'location.updated' },
} as const satisfies EventTable<LocationEvent>;
