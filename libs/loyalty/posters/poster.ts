import { requireState, assertNever, defineAggregate } from '#platform/kernel/aggregate.js';
import { pickChanges } from '#platform/kernel/changes.js';
import { NotFoundError, RejectedError } from '#platform/kernel/errors.js';
import { isExpired, type Card } from '#loyalty/cards/card.js';
import {
  posterEvents,
  type PosterAttributes,
  type PosterCreated,
  type PosterEvent,
} from './poster.events.js';
import { ISSUES } from '#translations/issues.js';
import type { FieldIssues } from '#platform/kernel/issues.js';

/** A printable invitation to a card: its QR code leads to the card's signup form. */
export type Poster = PosterCreated['data'] & {
  deletedAt: string | null;
  createdAt: string;
  updatedAt: string;
};

type Requirements = Pick<PosterAttributes, 'requireEmail' | 'requirePhone'>;

/** The attributes that posters copy from their card. */
export type CardDesign = Pick<
  Card,
  'id' | 'name' | 'cardColor' | 'textColor' | 'stampBackgroundColor'
>;

type Inherited =
  | 'title'
  | 'primaryColor'
  | 'textColor'
  | 'secondaryColor'
  | 'requireEmail'
  | 'requirePhone';

/** Null: inherited from the card, or implied by the contact collection mode. */
export type NewPoster = { cardId: number } & Omit<PosterAttributes, Inherited> & {
    [name in Inherited]: PosterAttributes[name] | null;
  };

export const poster = defineAggregate<Poster, PosterEvent>({
  name: 'poster',
  table: 'posters',
  events: posterEvents,
  evolve(state, event) {
    const at = event.meta.recordedAt;
    switch (event.type) {
      case 'PosterCreated':
        return { ...event.data, deletedAt: null, createdAt: at, updatedAt: at };
      case 'PosterUpdated':
        return { ...requireState(state), ...event.data, updatedAt: at };
      case 'PosterDeleted':
        return { ...requireState(state), deletedAt: at, updatedAt: at };
      default:
        return assertNever(event);
    }
  },
});

/** Creates a poster with copies of the card's values: a poster on a wall does not change with its card. */
export function createPoster(
  ids: { id: number; accountId: number; slug: string },
  card: CardDesign,
  input: NewPoster,
): PosterEvent[] {
  const attributes: { cardId: number } & PosterAttributes = {
    ...input,
    title: input.title ?? card.name,
    primaryColor: input.primaryColor ?? card.cardColor,
    textColor: input.textColor ?? card.textColor,
    secondaryColor: input.secondaryColor ?? card.stampBackgroundColor,
    ...deriveRequirements(input, { requireEmail: true, requirePhone: false }),
  };
  assertConsistent(attributes);
  return [{ type: 'PosterCreated', data: { ...ids, ...attributes } }];
}

/**
 * Updates a poster. Records only actual changes; without any there is no event. Unless the request names the required
 * contacts, they follow from a changed mode.
 */
export function updatePoster(
  state: Poster | undefined,
  input: Partial<PosterAttributes>,
): PosterEvent[] {
  const current = getExistingPoster(state);
  const { contactCollectionMode = current.contactCollectionMode } = input;
  const resulting = {
    ...input,
    ...deriveRequirements({ ...input, contactCollectionMode }, current),
  };
  assertConsistent({ ...current, ...resulting });
  const data = pickChanges<PosterAttributes>(current, resulting);
  return data ? [{ type: 'PosterUpdated', data }] : [];
}

/** Deletes a poster. The row stays, because its signup URL has to show that the signup has ended. */
export function deletePoster(state: Poster | undefined): PosterEvent[] {
  getExistingPoster(state);
  return [{ type: 'PosterDeleted', data: {} }];
}

export function collectsEmail(mode: PosterAttributes['contactCollectionMode']): boolean {
  return mode !== 'phone_only';
}

export function collectsPhone(mode: PosterAttributes['contactCollectionMode']): boolean {
  return mode !== 'email_only';
}

/**
 * Requires a contact that is the only one collected (POSTER-12); of two, as requested or as before.
 */
function deriveRequirements(
  {
    contactCollectionMode: mode,
    requireEmail,
    requirePhone,
  }: Pick<PosterAttributes, 'contactCollectionMode'> & {
    [name in keyof Requirements]?: boolean | null;
  },
  before: Requirements,
): Requirements {
  const implied =
    mode === 'email_and_phone'
      ? before
      : { requireEmail: collectsEmail(mode), requirePhone: collectsPhone(mode) };
  return {
    requireEmail: requireEmail ?? implied.requireEmail,
    requirePhone: requirePhone ?? implied.requirePhone,
  };
}

function assertConsistent(attributes: PosterAttributes): void {
  const { contactCollectionMode: mode, requireBirthday, minimumAge } = attributes;
  const errors: FieldIssues = {};
  if (mode !== 'email_and_phone') {
    const describeMismatch = (collected: boolean) =>
      collected ? ISSUES.contact_required({ mode }) : ISSUES.contact_not_collected({ mode });
    if (attributes.requireEmail !== collectsEmail(mode)) {
      errors['require_email'] = [describeMismatch(collectsEmail(mode))];
    }
    if (attributes.requirePhone !== collectsPhone(mode)) {
      errors['require_phone'] = [describeMismatch(collectsPhone(mode))];
    }
  }
  if (minimumAge !== null && !requireBirthday) {
    errors['minimum_age'] = [ISSUES.age_needs_birthday];
  }
  if (Object.keys(errors).length > 0) throw new RejectedError(errors);
}

function getExistingPoster(state: Poster | undefined): Poster {
  if (!state || state.deletedAt !== null) throw new NotFoundError('Poster');
  return state;
}

/** Tells whether visitors can sign up now. */
export function isSignupOpen(
  { active }: Pick<Poster, 'active'>,
  card: Pick<Card, 'archivedAt' | 'expiresAt'>,
  now: Date,
): boolean {
  return active && card.archivedAt === null && !isExpired(card, now);
}
