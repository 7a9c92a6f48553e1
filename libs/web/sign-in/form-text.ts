import { normalizeText } from '#platform/kernel/text.js';
import type { Localization } from '#translations/translations.js';

/** Reads a field in its normal form; empty when it was not sent. */
export function readFormText(
  form: Readonly<Record<string, string | undefined>>,
  name: string,
): string {
  return normalizeText(form[name] ?? '');
}

/** Formats a wait in minutes. */
export function formatWait(seconds: number, localization: Localization): string {
  return localization.t.signIn.minutes({ count: Math.ceil(seconds / 60) });
}
