import type { RowTable } from '#event-store/rows.js';
import { card, type Card } from './card.js';
import type { CardEvent } from './card.events.js';

export const cardRows: RowTable<Card, CardEvent> = { aggregate: card, table: 'cards' };
