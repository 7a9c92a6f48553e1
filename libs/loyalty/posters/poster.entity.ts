import type { CapKind } from '#platform/event-store/port/event-store.js';
import type { ReadModel } from '#platform/event-store/read-models/read-models.js';
import { poster, type Poster } from './poster.js';
import type { PosterEvent } from './poster.events.js';
import { ISSUES } from '#translations/issues.js';

export const posterReadModel: ReadModel<Poster, PosterEvent> = {
  ...poster,
  getClaimChanges: (event) =>
    event.type === 'PosterCreated'
      ? { claims: [{ kind: 'poster_slug', value: event.data.slug }] }
      : {},
};

export const posterCap: CapKind = {
  table: poster.table,
  ownerColumn: 'account_id',
  countedCondition: 'r.deleted_at is null',
  issue: ISSUES.too_many_posters,
  resolution: 'Delete one first.',
};
