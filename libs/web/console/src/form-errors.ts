import { NotFoundError, RejectedError, type FieldErrors } from '#kernel/errors.js';

/** Says why a form was refused: by field, and as a whole. */
export type FormErrors = { fields: FieldErrors; text: string };

export const NO_FORM_ERRORS: FormErrors = { fields: {}, text: '' };

/** Turns a refusal into the texts of a form. @throws every other error */
export function toFormErrors(error: unknown): FormErrors {
  if (error instanceof NotFoundError) return { fields: {}, text: `${error.message}.` };
  if (!(error instanceof RejectedError)) throw error;
  const { base = [], ...fields } = error.errors;
  const sentences = [...base, ...(base.length > 0 && error.resolution ? [error.resolution] : [])];
  return {
    fields,
    text: sentences.map((text) => (text.endsWith('.') ? text : `${text}.`)).join(' '),
  };
}

/** Creates the error of an address with too many e-mails. @param seconds until the next one is allowed */
export function createTooManyMailsErrors(seconds: number): FormErrors {
  const hours = Math.ceil(seconds / 3_600);
  const wait = hours === 1 ? 'in an hour' : `in ${hours} hours`;
  return {
    fields: { email: [`has received too many e-mails today. Try again ${wait}`] },
    text: '',
  };
}
