import { InvalidFieldsError } from '#platform/kernel/errors.js';
import { readBody } from '#platform/http/dtos.js';
import type { NewPoster } from '#loyalty/posters/poster.js';
import { CreatePosterDto, toPosterAttributes } from '#loyalty/posters/poster.dto.js';
import { defineForm, type ValuesOf } from '#web/pages/forms.js';
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
