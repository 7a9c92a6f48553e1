import type { CapKind } from '#platform/event-store/port/event-store.js';
import {
  createReadModelEntity,
  type ReadModelRow,
} from '#platform/event-store/read-models/read-model-entity.js';
import type { ReadModel } from '#platform/event-store/read-models/read-models.js';
import { poster, type Poster } from './poster.js';
import type { PosterEvent } from './poster.events.js';
import { ISSUES } from '#translations/issues.js';

export const posterReadModel: ReadModel<Poster, PosterEvent> = {
  aggregate: poster,
  table: 'posters',
  getClaimChanges: (event) =>
    event.type === 'PosterCreated'
      ? { claims: [{ kind: 'poster_slug', value: event.data.slug }] }
      : {},
};

export const posterCap: CapKind = {
  table: posterReadModel.table,
  ownerColumn: 'account_id',
  countedCondition: 'r.deleted_at is null',
  issue: ISSUES.too_many_posters,
  resolution: 'Delete one first.',
};

export type PosterRecord = ReadModelRow<Poster> & { card_id: number; deleted_at: string | null };

export const posterEntity = createReadModelEntity<PosterRecord>(posterReadModel.table, {
  card_id: { type: 'bigint' },
  deleted_at: { type: 'text' },
});
