import { existing, unreachable, type Aggregate } from '#kernel/aggregate.js';
import { NotFoundError } from '#kernel/errors.js';
import type { LocationAttributes, LocationEvent } from './location.events.js';

/** A shop's address, which stamps and redemptions can name. */
export type Location = { id: number; accountId: number } & LocationAttributes &
  Whereabouts & {
    deletedAt: string | null;
    createdAt: string;
    updatedAt: string;
  };

/** The result of geocoding the address. */
type Whereabouts = {
  /** Degrees, north and east positive; null until the address is found. */
  latitude: number | null;
  longitude: number | null;
  geocodeStatus: 'pending' | 'ok' | 'not_found' | 'failed';
};

const UNKNOWN: Whereabouts = { latitude: null, longitude: null, geocodeStatus: 'pending' };

export const location: Aggregate<Location, LocationEvent> = {
  name: 'location',
  names: {
    LocationCreated: 'location.created',
    LocationUpdated: 'location.updated',
    LocationDeleted: 'location.deleted',
  },
  foldVersion: 1,
  evolve(state, event) {
    const at = event.meta.recordedAt;
    switch (event.type) {
      case 'LocationCreated':
        return { ...event.data, ...UNKNOWN, deletedAt: null, createdAt: at, updatedAt: at };
      case 'LocationUpdated':
        return {
          ...existing(state),
          ...event.data,
          ...(event.data.address !== undefined && UNKNOWN),
          updatedAt: at,
        };
      case 'LocationDeleted':
        return { ...existing(state), deletedAt: at, updatedAt: at };
      default:
        return unreachable(event);
    }
  },
};

export function createLocation(
  id: number,
  accountId: number,
  attributes: LocationAttributes,
): LocationEvent[] {
  return [{ type: 'LocationCreated', data: { id, accountId, ...attributes } }];
}

/** Records only actual changes; without any there is no event. */
export function updateLocation(
  state: Location | undefined,
  wanted: Partial<LocationAttributes>,
): LocationEvent[] {
  const current = found(state);
  const changes = Object.entries(wanted).filter(
    ([name, value]) => current[name as keyof LocationAttributes] !== value,
  );
  if (changes.length === 0) return [];
  return [{ type: 'LocationUpdated', data: Object.fromEntries(changes) }];
}

/** The row stays, because the history refers to it. */
export function deleteLocation(state: Location | undefined): LocationEvent[] {
  found(state);
  return [{ type: 'LocationDeleted', data: {} }];
}

function found(state: Location | undefined): Location {
  if (!state || state.deletedAt !== null) throw new NotFoundError('Location');
  return state;
}
