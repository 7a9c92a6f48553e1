import { NotFoundError, RejectedError, type FieldErrors } from '#platform/kernel/errors.js';
import type { Localization } from '#translations/translations.js';
import { toFieldSentences } from './error-sentences.js';

/**
 * The errors of a form that was rejected, in sentences of the language of its page.
 * @property text about the whole form, one sentence a line
 */
export type FormErrors = { fields: FieldErrors; text: string };

/** A part of what a page shows. @property errors of its form; none where that was not rejected */
export type Rejectable = { errors?: FormErrors | null | undefined };

/** Describes a rejection to the page of its form, or that the record does not exist any more. @throws every other error */
export function toFormErrors(error: unknown, localization: Localization): FormErrors {
  if (error instanceof NotFoundError) return { fields: {}, text: localization.t.forms.notFound };
  return describeRejection(error, localization);
}

/** Describes a rejection to the page of its form, which does not exist without its record. @throws every other error */
export function describeRejection(error: unknown, { t }: Localization): FormErrors {
  if (!(error instanceof RejectedError)) throw error;
  const { base = [], ...fields } = toFieldSentences(error.issues, t);
  return { fields, text: base.join('\n') };
}

/** Lists everything that is wrong, for a page that does not show the fields. @returns one sentence a line */
export function listErrors({ fields, text }: FormErrors): string {
  return [...Object.values(fields).flat(), ...(text === '' ? [] : [text])].join('\n');
}
