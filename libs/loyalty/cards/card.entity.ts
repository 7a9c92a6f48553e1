import type { CapKind } from '#platform/event-store/port/event-store.js';
import type { ReadModel } from '#platform/event-store/read-models/read-models.js';
import { card, type Card } from './card.js';
import type { CardEvent } from './card.events.js';
import { ISSUES } from '#translations/issues.js';

export const cardReadModel: ReadModel<Card, CardEvent> = { aggregate: card, table: 'cards' };

export const cardCap: CapKind = {
  table: cardReadModel.table,
  ownerColumn: 'account_id',
  issue: ISSUES.too_many_cards,
  resolution: 'Change a card that is archived.',
};
