import type { RowTable } from '#event-store/rows.js';
import { location, type Location } from './location.js';
import type { LocationEvent } from './location.events.js';

export const locationRows: RowTable<Location, LocationEvent> = {
  aggregate: location,
  table: 'locations',
};
