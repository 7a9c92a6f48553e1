import { parseAbsoluteUrl } from '#platform/kernel/absolute-url.js';
import { normalizeText } from '#platform/kernel/text.js';
import type { ConsentTexts } from './account.events.js';
import { ISSUES } from '#translations/issues.js';
import type { FieldIssues } from '#platform/kernel/issues.js';

export const NO_CONSENT_TEXTS: ConsentTexts = {
  marketing: null,
  sms: null,
  privacy: null,
  privacyUrl: null,
};

export const MAX_CONSENT_TEXT = 2_000;
export const MAX_PRIVACY_URL = 2_048;
/** Limits the page: a phone loads all texts with the form. */
const MAX_BYTES = 8 * 1024;

const FIELDS = {
  marketing: 'marketing_consent_text',
  sms: 'sms_consent_text',
  privacy: 'privacy_text',
  privacyUrl: 'privacy_url',
} as const;

/** Normalizes the texts; a blank text becomes null. An invalid address is kept unchanged. */
export function tidyConsentTexts(texts: ConsentTexts): ConsentTexts {
  const tidy = (text: string | null) =>
    normalizeText((text ?? '').replaceAll('\r\n', '\n')) || null;
  return {
    marketing: tidy(texts.marketing),
    sms: tidy(texts.sms),
    privacy: tidy(texts.privacy),
    privacyUrl:
      tidy(texts.privacyUrl) && (parsePrivacyUrl(texts.privacyUrl ?? '') ?? texts.privacyUrl),
  };
}

/** Parses a web address, which people who sign up follow as a link; undefined if it is not one. */
export function parsePrivacyUrl(text: string): string | undefined {
  const url = parseAbsoluteUrl(text);
  if (url?.protocol !== 'https:' || url.username !== '' || url.password !== '') return undefined;
  return url.href.length > MAX_PRIVACY_URL ? undefined : url.href;
}

/** Finds the errors of normalized texts, by field. */
export function findConsentTextIssues(texts: ConsentTexts): FieldIssues {
  const errors: FieldIssues = {};
  for (const name of ['marketing', 'sms', 'privacy'] as const) {
    if ([...(texts[name] ?? '')].length > MAX_CONSENT_TEXT) {
      errors[FIELDS[name]] = [ISSUES.too_long({ max: MAX_CONSENT_TEXT })];
    }
    if (texts[name]?.includes('\0')) errors[FIELDS[name]] = [ISSUES.nul_character];
  }
  const { privacyUrl } = texts;
  if (privacyUrl !== null && parsePrivacyUrl(privacyUrl) === undefined) {
    errors[FIELDS.privacyUrl] = [ISSUES.privacy_url_invalid];
  }
  const together = Buffer.byteLength(JSON.stringify(texts));
  if (Object.keys(errors).length === 0 && together > MAX_BYTES) {
    errors['base'] = [ISSUES.texts_too_long];
  }
  return errors;
}
