import type { Form } from '#platform/http/body-kinds.js';
import { RejectedError } from '#platform/kernel/errors.js';

/** The hidden field of a form that was kept while its user signed in. */
export const KEPT_FORM_FIELD = 'kept_form';

/** The limit of the forms that carry one. */
export const MAX_KEPT_FORM_BYTES = 64 * 1024;

/**
 * Matches the fields that are never kept: what only its user knows, what opens something, and what a page adds to every
 * form. Headers of webhooks hold secrets of the receiver.
 */
const PRIVATE_FIELD = /password|secret|token|headers|^(pin|code|_csrf|form_key|kept_form)$/i;

/**
 * A form that was sent after its session had ended.
 * @property path where it is sent to, with its query
 * @property hadFile whether it came with a file, which has to be chosen again
 */
export type KeptForm = { path: string; fields: Form; isUpload: boolean; hadFile: boolean };

/** Picks the fields to keep. @returns undefined when nothing was entered, such as in a form that is only a button */
export function pickKeptFields(form: Form): Form | undefined {
  const fields = Object.entries(form).filter(([name]) => !PRIVATE_FIELD.test(name));
  const isEmpty = fields.every(([, value]) => value === undefined || value.trim() === '');
  return isEmpty ? undefined : Object.fromEntries(fields);
}

/**
 * Rejects a form that comes back after its user has signed in again: its page shows what was entered, and nothing is
 * executed until they send it.
 */
export class KeptFormError extends RejectedError {
  constructor() {
    super({});
  }
}
