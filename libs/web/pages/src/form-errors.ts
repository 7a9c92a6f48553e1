import { NotFoundError, RejectedError, type FieldErrors } from '#kernel/errors.js';
import type { Localization } from '#translations/translations.js';
import { toFieldSentences } from './error-sentences.js';

/**
 * Says why a form was refused, in sentences of the language of its page.
 * @property text about the whole form, one sentence a line
 */
export type FormErrors = { fields: FieldErrors; text: string };

/** A part of what a page shows. @property errors why its form was refused; none: it was not */
export type Rejectable = { errors?: FormErrors | null | undefined };

/** Turns a refusal into the errors of a form, and so for a record that does not exist any more. @throws every other error */
export function toFormErrors(error: unknown, localization: Localization): FormErrors {
  if (error instanceof NotFoundError) return { fields: {}, text: localization.t.forms.notFound };
  return toRefusal(error, localization);
}

/** Turns a refusal into the errors of a form whose page does not exist without its record. @throws every other error */
export function toRefusal(error: unknown, { t }: Localization): FormErrors {
  if (!(error instanceof RejectedError)) throw error;
  const { base = [], ...fields } = toFieldSentences(error.issues, t);
  return { fields, text: base.join('\n') };
}

/** Lists everything that is wrong, for a page that does not show the fields. @returns one sentence a line */
export function listErrors({ fields, text }: FormErrors): string {
  return [...Object.values(fields).flat(), ...(text === '' ? [] : [text])].join('\n');
}
