import { requireState, assertNever, defineAggregate } from '#platform/kernel/aggregate.js';
import { pickChanges } from '#platform/kernel/changes.js';
import { NotFoundError, RejectedError } from '#platform/kernel/errors.js';
import { cardEvents, type CardAttributes, type CardEvent } from './card.events.js';
import { ISSUES } from '#translations/issues.js';

/** A loyalty card template. */
export type Card = { id: number; accountId: number } & CardAttributes & {
    /** SHA-256 of the picture last uploaded, in hex; shown while `stripType` is image. */
    stripPicture: string | null;
    archivedAt: string | null;
    createdAt: string;
    updatedAt: string;
  };

export const card = defineAggregate<Card, CardEvent>({
  name: 'card',
  table: 'cards',
  events: cardEvents,
  evolve(state, event) {
    const at = event.meta.recordedAt;
    switch (event.type) {
      case 'CardCreated':
        return {
          ...event.data,
          stripPicture: null,
          archivedAt: null,
          createdAt: at,
          updatedAt: at,
        };
      case 'CardUpdated':
        return { ...requireState(state), ...event.data, updatedAt: at };
      case 'CardArchived':
        return { ...requireState(state), archivedAt: at, updatedAt: at };
      case 'CardUnarchived':
        return { ...requireState(state), archivedAt: null, updatedAt: at };
      case 'CardStripImageSet':
        return {
          ...requireState(state),
          stripType: 'image',
          stripPicture: event.data.picture,
          updatedAt: at,
        };
      default:
        return assertNever(event);
    }
  },
});

export function createCard(id: number, accountId: number, attributes: CardAttributes): CardEvent[] {
  assertInitialStamps(attributes);
  return [{ type: 'CardCreated', data: { id, accountId, ...attributes } }];
}

/** Updates the record with an event of the actual changes; without any there is no event. */
export function updateCard(state: Card | undefined, input: Partial<CardAttributes>): CardEvent[] {
  const current = getExistingCard(state);
  assertInitialStamps({ ...current, ...input });
  const data = pickChanges<CardAttributes>(current, input);
  return data ? [{ type: 'CardUpdated', data }] : [];
}

export function archiveCard(state: Card | undefined): CardEvent[] {
  return getExistingCard(state).archivedAt === null ? [{ type: 'CardArchived', data: {} }] : [];
}

export function unarchiveCard(state: Card | undefined): CardEvent[] {
  return getExistingCard(state).archivedAt === null ? [] : [{ type: 'CardUnarchived', data: {} }];
}

/** @param picture SHA-256 of what was stored */
export function setStripImage(state: Card | undefined, picture: string): CardEvent[] {
  const { stripType, stripPicture } = getExistingCard(state);
  if (stripType === 'image' && stripPicture === picture) return [];
  return [{ type: 'CardStripImageSet', data: { picture } }];
}

export function isExpired(card: { expiresAt: string | null }, now: Date): boolean {
  return card.expiresAt !== null && new Date(card.expiresAt) <= now;
}

function getExistingCard(state: Card | undefined): Card {
  if (!state) throw new NotFoundError('Card');
  return state;
}

function assertInitialStamps({ initialStamps, stampsRequired }: CardAttributes): void {
  if (initialStamps >= stampsRequired) {
    throw new RejectedError({
      initial_stamps: [ISSUES.initial_stamps_too_many({ required: stampsRequired })],
    });
  }
}
