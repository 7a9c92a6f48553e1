import { requireState, assertNever, defineAggregate } from '#platform/kernel/aggregate.js';
import { pickChanges } from '#platform/kernel/changes.js';
import { NotFoundError } from '#platform/kernel/errors.js';
import {
  locationEvents,
  type Coordinates,
  type GeocodedPrecision,
  type LocationAttributes,
  type LocationEvent,
} from './location.events.js';

/** A shop's address, which stamps and redemptions can name. */
export type Location = { id: number; accountId: number } & LocationAttributes &
  Geolocation & {
    deletedAt: string | null;
    createdAt: string;
    updatedAt: string;
  };

export type Precision = 'manual' | GeocodedPrecision;

/** Where the shop is: at its pin, or else where geocoding found the address. */
type Geolocation = {
  /** Degrees, north and east positive; null until the address is found. */
  latitude: number | null;
  longitude: number | null;
  /** Null without coordinates. */
  precision: Precision | null;
  geocodeStatus: 'pending' | 'ok' | 'not_found' | 'failed';
};

/** The result of geocoding an address. */
export type Geocoding =
  | ({ status: 'ok'; precision: GeocodedPrecision } & Coordinates)
  | { status: 'not_found' | 'failed' };

export type NewLocation = LocationAttributes & { pin: Coordinates | null };

/** @property pin null: no pin, so that the address counts; left out: unchanged */
export type LocationChanges = Partial<LocationAttributes> & { pin?: Coordinates | null };

const NO_COORDINATES = { latitude: null, longitude: null, precision: null };
const NOT_GEOCODED: Geolocation = { ...NO_COORDINATES, geocodeStatus: 'pending' };

export const location = defineAggregate<Location, LocationEvent>({
  name: 'location',
  table: 'locations',
  events: locationEvents,
  evolve(state, event) {
    const at = event.meta.recordedAt;
    if (event.type === 'LocationCreated') {
      return { ...event.data, ...NOT_GEOCODED, deletedAt: null, createdAt: at, updatedAt: at };
    }
    return { ...requireState(state), ...deriveChanges(event), updatedAt: at };
  },
});

function deriveChanges(
  event: Exclude<LocationEvent, { type: 'LocationCreated' }> & { meta: { recordedAt: string } },
): Partial<Location> {
  switch (event.type) {
    case 'LocationUpdated':
      return { ...event.data, ...(event.data.address !== undefined && NOT_GEOCODED) };
    case 'LocationDeleted':
      return { deletedAt: event.meta.recordedAt };
    case 'LocationPinned':
      return { ...event.data, precision: 'manual', geocodeStatus: 'ok' };
    case 'LocationUnpinned':
      return NOT_GEOCODED;
    case 'LocationGeocoded': {
      const { latitude, longitude, precision } = event.data;
      return { latitude, longitude, precision, geocodeStatus: 'ok' };
    }
    case 'LocationNotGeocoded':
      return { ...NO_COORDINATES, geocodeStatus: event.data.status };
    default:
      return assertNever(event);
  }
}

/** Tells whether the coordinates are exact to a street at least, so that a phone may act on being near them. */
export function isPrecise(precision: Precision | null): boolean {
  return precision === 'manual' || precision === 'rooftop' || precision === 'street';
}

export function createLocation(
  id: number,
  accountId: number,
  { pin, ...attributes }: NewLocation,
): LocationEvent[] {
  return [
    { type: 'LocationCreated', data: { id, accountId, ...attributes } },
    ...(pin ? [createPin(pin)] : []),
  ];
}

/** Updates the record with an event of the actual changes; without any there is no event. */
export function updateLocation(
  state: Location | undefined,
  { pin, ...input }: LocationChanges,
): LocationEvent[] {
  const current = getExistingLocation(state);
  const data = pickChanges<LocationAttributes>(current, input);
  const hasPin = current.precision === 'manual' && data?.address === undefined;
  return [
    ...(data ? [{ type: 'LocationUpdated' as const, data }] : []),
    ...(pin && !(hasPin && hasCoordinates(current, pin)) ? [createPin(pin)] : []),
    ...(pin === null && hasPin ? [{ type: 'LocationUnpinned' as const, data: {} }] : []),
  ];
}

/**
 * Applies the result only to the address that was asked for, and never over a pin.
 * @param provider the geocoder's name
 */
export function geocodeLocation(
  state: Location | undefined,
  address: string,
  result: Geocoding,
  provider: string,
): LocationEvent[] {
  if (!state || state.deletedAt !== null) return [];
  if (state.address !== address || state.precision === 'manual') return [];
  if (result.status !== 'ok') {
    // A geocoder that is asked again and fails takes nothing away that was known.
    if (state.geocodeStatus === result.status || state.geocodeStatus === 'ok') return [];
    return [{ type: 'LocationNotGeocoded', data: { status: result.status, provider } }];
  }
  const { latitude, longitude, precision } = result;
  if (hasCoordinates(state, result) && state.precision === precision) return [];
  return [{ type: 'LocationGeocoded', data: { latitude, longitude, precision, provider } }];
}

/** Deletes a location. The row stays, because the history refers to it. */
export function deleteLocation(state: Location | undefined): LocationEvent[] {
  getExistingLocation(state);
  return [{ type: 'LocationDeleted', data: {} }];
}

function createPin({ latitude, longitude }: Coordinates): LocationEvent {
  return { type: 'LocationPinned', data: { latitude, longitude } };
}

function hasCoordinates(state: Location, { latitude, longitude }: Coordinates): boolean {
  return state.latitude === latitude && state.longitude === longitude;
}

function getExistingLocation(state: Location | undefined): Location {
  if (!state || state.deletedAt !== null) throw new NotFoundError('Location');
  return state;
}
