import type { Form } from '#platform/http/body-kinds.js';
import { parsePathId } from '#platform/http/path.js';
import { InvalidFieldsError } from '#platform/kernel/errors.js';
import { readBody } from '#platform/http/dtos.js';
import type { NewPoster } from '#loyalty/posters/poster.js';
import { CreatePosterDto, toPosterAttributes } from '#loyalty/posters/poster.dto.js';
import { defineForm, type ValuesOf } from '#web/pages/forms.js';
import { isPaperSize, type PaperSize } from './paper.js';
import { MAX_TITLE_LENGTH } from './poster-content.js';
import type { PosterDraft } from './poster-documents.service.js';
import { ISSUES } from '#translations/issues.js';

export const posterForm = defineForm(CreatePosterDto, [
  'card_id',
  'title',
  'paper_size',
  'primary_color',
  'text_color',
  'secondary_color',
  'contact_collection_mode',
  'minimum_age',
  'require_email',
  'require_phone',
  'require_birthday',
]);

export type PosterForm = ValuesOf<typeof posterForm>;

/**
 * Parses the form by the rules of the API.
 * @throws InvalidFieldsError
 */
export function parsePosterForm(values: PosterForm): NewPoster {
  const { contact_collection_mode: mode } = values;
  const isChoice = mode === 'email_and_phone';
  const input = readBody(CreatePosterDto, {
    poster: {
      ...values,
      // They follow from a mode with one contact, and the form then hides them.
      require_email: isChoice ? values.require_email : null,
      require_phone: isChoice ? values.require_phone : null,
    },
  });
  if (input.minimum_age !== null && !input.require_birthday) {
    throw new InvalidFieldsError({ minimum_age: [ISSUES.age_needs_birthday] });
  }
  return toPosterAttributes(input);
}

/** Parses what a poster shows of an unfinished form. @throws NotFoundError without a card */
export function parsePosterDraft(form: Form): { draft: PosterDraft; paperSize: PaperSize } {
  const values = posterForm.read(form);
  const { title, paper_size: size } = values;
  return {
    draft: {
      cardId: parsePathId(values.card_id),
      title: title === '' ? null : title.slice(0, MAX_TITLE_LENGTH),
      primaryColor: parseColor(values.primary_color),
      textColor: parseColor(values.text_color),
      secondaryColor: parseColor(values.secondary_color),
    },
    paperSize: isPaperSize(size) ? size : 'a4',
  };
}

function parseColor(text: string): string | null {
  return /^#[0-9a-f]{6}$/i.test(text) ? text.toUpperCase() : null;
}
