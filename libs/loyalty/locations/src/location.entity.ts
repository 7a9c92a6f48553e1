import type { CapKind } from '#event-store/port/event-store.js';
import { rowEntity, type RowRecord } from '#event-store/read-models/read-model-entity.js';
import type { RowTable } from '#event-store/read-models/read-models.js';
import { location, type Location } from './location.js';
import type { LocationEvent } from './location.events.js';

export const locationRows: RowTable<Location, LocationEvent> = {
  aggregate: location,
  table: 'locations',
};

export const locationCap: CapKind = {
  table: locationRows.table,
  ownerColumn: 'account_id',
  isCounted: 'r.deleted_at is null',
  label: 'locations of this store',
  resolution: 'Delete one first.',
};

export type LocationRecord = RowRecord<Location> & { deleted_at: string | null };

export const locationEntity = rowEntity<LocationRecord>(locationRows.table, {
  deleted_at: { type: 'text' },
});
