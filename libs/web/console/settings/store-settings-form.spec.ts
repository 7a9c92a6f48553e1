import { expect, it } from '@jest/globals';
import { MAX_CONSENT_TEXT } from '#loyalty/accounts/consent-texts.js';
import { LANGUAGE_CODES } from '#translations/translations.js';
import {
  canSuggestTexts,
  storeSettingsForm,
  suggestConsentTexts,
  type StoreSettingsForm,
} from './store-settings-form.dto.js';

const BLANK: StoreSettingsForm = {
  ...storeSettingsForm.read({}),
  name: 'Main street',
  store_name: 'Café Lou',
  locale: 'de-AT',
};

it('suggests consent texts in the language of the store, in its name', () => {
  const suggested = suggestConsentTexts(BLANK, null, true);
  expect(suggested.marketing_consent_text).toBe(
    'Ja, Café Lou darf mir Neuigkeiten und Angebote per E-Mail senden. Ich kann diese Einwilligung jederzeit widerrufen.',
  );
  expect(suggested.sms_consent_text).toContain('per SMS');
  expect(canSuggestTexts(suggested, true)).toBe(false);
  const texts = LANGUAGE_CODES.map(
    (locale) => suggestConsentTexts({ ...BLANK, locale }, null, true).marketing_consent_text,
  );
  expect(new Set(texts).size).toBe(5);
  for (const text of texts) expect(text.length).toBeLessThan(MAX_CONSENT_TEXT);
});

it('keeps consent texts that the store has, and suggests none for SMS where that is not set up', () => {
  const own = { ...BLANK, marketing_consent_text: 'Yes, please' };
  expect(suggestConsentTexts(own, null, false)).toEqual(own);
  expect([canSuggestTexts(BLANK, false), canSuggestTexts(own, false)]).toEqual([true, false]);
  expect(canSuggestTexts(own, true)).toBe(true);
});
