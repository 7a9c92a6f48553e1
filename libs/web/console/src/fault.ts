import { NotFoundError, RejectedError, type FieldErrors } from '#kernel/errors.js';

/** Why a form was not taken: by field, and about the whole of it. */
export type Fault = { errors: FieldErrors; text: string };

export const NO_FAULT: Fault = { errors: {}, text: '' };

/** What people are told about it. @throws what is no refusal */
export function faultOf(error: unknown): Fault {
  if (error instanceof NotFoundError) return { errors: {}, text: `${error.message}.` };
  if (!(error instanceof RejectedError)) throw error;
  const { base = [], ...errors } = error.errors;
  const text = [...base, ...(base.length > 0 && error.resolution ? [error.resolution] : [])];
  return { errors, text: text.map((one) => (one.endsWith('.') ? one : `${one}.`)).join(' ') };
}

/** @param seconds until the next mail to the address */
export function createMailLimitFault(seconds: number): Fault {
  const hours = Math.ceil(seconds / 3_600);
  const wait = hours === 1 ? 'in an hour' : `in ${hours} hours`;
  return { errors: { email: [`has been sent too many mails today. Try again ${wait}`] }, text: '' };
}
