import type { FormErrors } from '#pages/form-errors.js';
import { formatCount, type Localization } from '#translations/translations.js';

/** Creates the error of an address with too many e-mails. @param seconds until the next one is allowed */
export function createTooManyMailsErrors(seconds: number, localization: Localization): FormErrors {
  const { tooManyMails } = localization.t.console.users;
  const text = formatCount(tooManyMails, Math.ceil(seconds / 3_600), localization);
  return { fields: { email: [text] }, text: '' };
}
