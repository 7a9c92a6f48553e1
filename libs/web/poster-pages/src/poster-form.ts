import type { Form } from '#http/body-kinds.js';
import type { Poster } from '#posters/poster.js';

/** Named as the errors of the API name them. */
const TEXTS = [
  'title',
  'paper_size',
  'primary_color',
  'text_color',
  'secondary_color',
  'contact_collection_mode',
  'minimum_age',
] as const;
const BOXES = ['require_email', 'require_phone', 'require_birthday'] as const;

/** @property card_id of a new poster, empty without a card */
export type PosterForm = { card_id: string } & Record<(typeof TEXTS)[number], string> &
  Record<(typeof BOXES)[number], boolean>;

/** Reads the entered values, which are shown again with errors. */
export function readPosterForm(form: Form): PosterForm {
  const texts = ['card_id', ...TEXTS].map((name) => [name, (form[name] ?? '').trim()]);
  const boxes = BOXES.map((name) => [name, form[name] !== undefined]);
  return Object.fromEntries([...texts, ...boxes]) as PosterForm;
}

export function toPosterForm(poster: Poster): PosterForm {
  return {
    card_id: String(poster.cardId),
    title: poster.title,
    paper_size: poster.paperSize,
    primary_color: poster.primaryColor,
    text_color: poster.textColor,
    secondary_color: poster.secondaryColor,
    contact_collection_mode: poster.contactCollectionMode,
    minimum_age: poster.minimumAge === null ? '' : String(poster.minimumAge),
    require_email: poster.requireEmail,
    require_phone: poster.requirePhone,
    require_birthday: poster.requireBirthday,
  };
}

/** Fills the form of a new poster. */
export function createPosterForm(cardId: string): PosterForm {
  return {
    card_id: cardId,
    title: '',
    paper_size: 'a4',
    primary_color: '',
    text_color: '',
    secondary_color: '',
    contact_collection_mode: 'email_and_phone',
    minimum_age: '',
    require_email: true,
    require_phone: false,
    require_birthday: false,
  };
}
