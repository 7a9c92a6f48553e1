import { InvalidFieldsError } from '#kernel/errors.js';
import { readBody } from '#http/dtos.js';
import type { NewPoster } from '#posters/poster.js';
import { CreatePosterDto, toPosterAttributes } from '#posters/poster.dto.js';
import type { PosterForm } from './poster-form.js';
import { ISSUES } from '#translations/issues.js';

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
