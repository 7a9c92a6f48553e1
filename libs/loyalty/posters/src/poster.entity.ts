import type { CapKind } from '#event-store/port/event-store.js';
import { rowEntity, type RowRecord } from '#event-store/read-models/read-model-entity.js';
import type { RowTable } from '#event-store/read-models/read-models.js';
import { poster, type Poster } from './poster.js';
import type { PosterEvent } from './poster.events.js';

export const posterRows: RowTable<Poster, PosterEvent> = {
  aggregate: poster,
  table: 'posters',
  claimsOf: (event) =>
    event.type === 'PosterCreated'
      ? { taken: [{ kind: 'poster_slug', value: event.data.slug }] }
      : {},
};

export const posterCap: CapKind = {
  table: posterRows.table,
  ownerColumn: 'account_id',
  isCounted: 'r.deleted_at is null',
  label: 'posters of this store',
  resolution: 'Delete one first.',
};

export type PosterRecord = RowRecord<Poster> & { card_id: number; deleted_at: string | null };

export const posterEntity = rowEntity<PosterRecord>(posterRows.table, {
  card_id: { type: 'bigint' },
  deleted_at: { type: 'text' },
});
