import { Field, parsedTextKind, TextField } from '#platform/http/fields.js';
import { readFields } from '#platform/http/dtos.js';
import {
  toAccountSettings,
  UpdateAccountDto,
  type AccountJson,
} from '#loyalty/accounts/account.dto.js';
import type { AccountSettings } from '#loyalty/accounts/account.events.js';
import {
  MAX_CONSENT_TEXT,
  MAX_PRIVACY_URL,
  parsePrivacyUrl,
} from '#loyalty/accounts/consent-texts.js';
import { defineForm, type ValuesOf } from '#web/pages/forms.js';
import type { AddressForm } from '#translations/address-form.js';
import { ISSUES } from '#translations/issues.js';
import { getCustomerTranslations } from '#translations/translations.js';

type Text = string | null;

/** The changes of a store, with what only the console can set. */
class StoreSettingsDto extends UpdateAccountDto {
  @TextField({ optional: true, max: 1_000 }) declare readonly sms_countries: Text;
  @TextField({ optional: true, max: MAX_CONSENT_TEXT })
  declare readonly marketing_consent_text: Text;
  @TextField({ optional: true, max: MAX_CONSENT_TEXT }) declare readonly sms_consent_text: Text;
  @TextField({ optional: true, max: MAX_CONSENT_TEXT }) declare readonly privacy_text: Text;
  @Field(parsedTextKind(MAX_PRIVACY_URL, parsePrivacyUrl, ISSUES.privacy_url_invalid), {
    optional: true,
  })
  declare readonly privacy_url: Text;
}

export const storeSettingsForm = defineForm(StoreSettingsDto, [
  'name',
  'store_name',
  'time_zone',
  'locale',
  'address_form',
  'country',
  'sms_countries',
  'marketing_consent_text',
  'sms_consent_text',
  'privacy_text',
  'privacy_url',
  'confirms_counter_consents',
]);

export type StoreSettingsForm = ValuesOf<typeof storeSettingsForm>;

export function toStoreSettingsForm(
  account: AccountJson,
  { consentTexts, smsCountries }: Pick<AccountSettings, 'consentTexts' | 'smsCountries'>,
): StoreSettingsForm {
  return storeSettingsForm.toValues({
    ...account,
    sms_countries: smsCountries.join(', '),
    marketing_consent_text: consentTexts.marketing,
    sms_consent_text: consentTexts.sms,
    privacy_text: consentTexts.privacy,
    privacy_url: consentTexts.privacyUrl,
  });
}

/** Parses the form. Codes of countries stand between spaces, commas or semicolons. @throws InvalidFieldsError */
export function parseStoreSettings(values: StoreSettingsForm): Partial<AccountSettings> {
  const input = readFields(StoreSettingsDto, values);
  return {
    ...toAccountSettings(input),
    smsCountries: (input.sms_countries ?? '').split(/[\s,;]+/u).filter((code) => code !== ''),
    consentTexts: {
      marketing: input.marketing_consent_text,
      sms: input.sms_consent_text,
      privacy: input.privacy_text,
      privacyUrl: input.privacy_url,
    },
  };
}

/** Tells whether a consent text is blank that can be suggested. @param hasSms whether SMS is set up */
export function canSuggestTexts(values: StoreSettingsForm, hasSms: boolean): boolean {
  return values.marketing_consent_text === '' || (hasSms && values.sms_consent_text === '');
}

/** Fills in blank consent texts, in the language of the store. Customers are asked for consent once somebody saves them. */
export function suggestConsentTexts(
  values: StoreSettingsForm,
  addressForm: AddressForm | null,
  hasSms: boolean,
): StoreSettingsForm {
  const { t } = getCustomerTranslations({ locale: values.locale, addressForm });
  const store = values.store_name || values.name;
  const { marketing, sms } = t.signup.suggestedConsents;
  return {
    ...values,
    marketing_consent_text: values.marketing_consent_text || marketing({ store }),
    sms_consent_text: values.sms_consent_text || (hasSms ? sms({ store }) : ''),
  };
}
