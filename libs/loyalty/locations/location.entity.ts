import type { CapKind } from '#platform/event-store/port/event-store.js';
import {
  createReadModelEntity,
  type ReadModelRow,
} from '#platform/event-store/read-models/read-model-entity.js';
import type { ReadModel } from '#platform/event-store/read-models/read-models.js';
import { location, type Location } from './location.js';
import type { LocationEvent } from './location.events.js';
import { ISSUES } from '#translations/issues.js';

export const locationReadModel: ReadModel<Location, LocationEvent> = {
  aggregate: location,
  table: 'locations',
};

export const locationCap: CapKind = {
  table: locationReadModel.table,
  ownerColumn: 'account_id',
  countedCondition: 'r.deleted_at is null',
  issue: ISSUES.too_many_locations,
  resolution: 'Delete one first.',
};

export type LocationRecord = ReadModelRow<Location> & { deleted_at: string | null };

export const locationEntity = createReadModelEntity<LocationRecord>(locationReadModel.table, {
  deleted_at: { type: 'text' },
});
