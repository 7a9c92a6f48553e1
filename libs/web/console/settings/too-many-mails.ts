import type { FormErrors } from '#web/pages/form-errors.js';
import type { Localization } from '#translations/translations.js';

/** Creates the error of an address with too many e-mails. @param seconds until the next one is allowed */
export function createTooManyMailsErrors(seconds: number, localization: Localization): FormErrors {
  const { tooManyMails } = localization.t.console.users;
  const text = tooManyMails({ count: Math.ceil(seconds / 3_600) });
  return { fields: { email: [text] }, text: '' };
}
