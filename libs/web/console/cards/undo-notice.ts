import type { Card } from '#loyalty/cards/card.js';
import { parsePositiveInteger } from '#web/pages/page-query.js';

/** For how long a page that says what was saved offers to undo it. */
const OFFERED_MS = 10 * 60_000;

/** The page that says it: the card's own, or the one of the brand. */
export type UndoPage = 'card' | 'brand';

/** The form of the part `banner`, whose button gives a card its former values back. */
export type UndoForm = { path: string; fields: Record<string, string> };

/** Creates the query that a page gets after a card was changed. @param startedAt just before the change */
export function renderUndoQuery(startedAt: Date): string {
  return `undo=${startedAt.getTime()}`;
}

/** Creates the form of that query. @param cards the path of the store's cards @returns null when it is too late */
export function createUndoForm(
  undo: unknown,
  { card, cards, page, now }: { card: Card; cards: string; page: UndoPage; now: Date },
): UndoForm | null {
  const startedMs = parsePositiveInteger(undo);
  const ageMs = now.getTime() - (startedMs ?? 0);
  if (startedMs === null || ageMs < 0 || ageMs > OFFERED_MS) return null;
  return {
    path: `${cards}/${card.id}/undo`,
    fields: { undo: String(startedMs), opened_updated_at: card.updatedAt, page },
  };
}

/** Parses the time up to which the change of such a form is undone: before anything of it was recorded. */
export function parseUndoTime(undo: unknown): Date | null {
  const startedMs = parsePositiveInteger(undo);
  return startedMs === null ? null : new Date(startedMs - 1);
}
