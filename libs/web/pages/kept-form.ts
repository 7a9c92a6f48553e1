import type { Form } from '#platform/http/body-kinds.js';
import { RejectedError } from '#platform/kernel/errors.js';

/** The hidden field of a form that was kept while its user signed in. */
export const KEPT_FORM_FIELD = 'kept_form';

/** The limit of the forms that carry one. */
export const MAX_KEPT_FORM_BYTES = 64 * 1024;

/**
 * Matches the fields that are never kept: what only its user knows, and what opens something. Headers of webhooks hold
 * secrets of the receiver.
 */
const SECRET_FIELD = /password|secret|token|headers|^(pin|code)$/i;
/** Matches what a page adds to every form. */
const ADDED_FIELD = /^(_csrf|form_key|kept_form)$/;

/**
 * A form that was sent after its session had ended.
 * @property path where it is sent to, with its query
 * @property hadFile whether it came with a file, which has to be chosen again
 * @property hadSecret whether something secret was entered, which has to be entered again
 */
export type KeptForm = {
  path: string;
  fields: Form;
  isUpload: boolean;
  hadFile: boolean;
  hadSecret: boolean;
};

/** Picks the fields to keep. @returns undefined when nothing was entered, such as in a form that is only a button */
export function pickKeptFields(form: Form): Form | undefined {
  const fields = Object.entries(form).filter(
    ([name]) => !SECRET_FIELD.test(name) && !ADDED_FIELD.test(name),
  );
  return fields.some(isEntered) ? Object.fromEntries(fields) : undefined;
}

/** Tells whether something was entered that is not kept. */
export function hasSecret(form: Form): boolean {
  return Object.entries(form).some((field) => SECRET_FIELD.test(field[0]) && isEntered(field));
}

function isEntered([, value]: [string, string | undefined]): boolean {
  return value !== undefined && value.trim() !== '';
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
