import { NotFoundError, RejectedError, type FieldErrors } from '#kernel/errors.js';
import type { Localization } from '#translations/translations.js';

/**
 * Says why a form was refused: by field, and as a whole. The parts of the page turn messages of commands into sentences
 * in its language.
 * @property text one message a line
 */
export type FormErrors = { fields: FieldErrors; text: string };

export const NO_FORM_ERRORS: FormErrors = { fields: {}, text: '' };

/** Turns a refusal into the errors of a form. @throws every other error */
export function toFormErrors(error: unknown, { t }: Localization): FormErrors {
  if (error instanceof NotFoundError) return { fields: {}, text: t.forms.notFound };
  if (!(error instanceof RejectedError)) throw error;
  const { base = [], ...fields } = error.errors;
  const messages = [...base, ...(base.length > 0 && error.resolution ? [error.resolution] : [])];
  return { fields, text: messages.join('\n') };
}
