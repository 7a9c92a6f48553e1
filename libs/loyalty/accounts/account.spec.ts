import { describe, expect, it } from '@jest/globals';
import { NotFoundError } from '#platform/kernel/errors.js';
import { AT, scenario } from '../../../test/support/fixtures/aggregate-scenario.js';
import {
  account,
  createAccount,
  parseLocale,
  parseTimeZone,
  removeLogo,
  setLogo,
  updateAccount,
} from './account.js';
import { NO_CONSENT_TEXTS } from './consent-texts.js';
import type { AccountEvent } from './account.events.js';

const attributes = {
  name: 'Corner Café',
  storeName: null,
  personal: false,
  timeZone: 'Europe/Berlin',
  locale: 'de',
  country: null,
};

const accountCreated: AccountEvent = { type: 'AccountCreated', data: { id: 4, ...attributes } };

const LATER = '2026-03-02T10:00:00.000Z';

describe('an account', () => {
  it('has the name of existing streams, and the times of its events', () => {
    expect(account.name).toBe('account');
    const accountUpdated: AccountEvent = { type: 'AccountUpdated', data: { storeName: 'Corner' } };
    expect(
      scenario(account, accountCreated, { ...accountUpdated, at: LATER }).state(),
    ).toMatchObject({
      createdAt: AT,
      updatedAt: LATER,
    });
  });

  it('has a name of up to 255 characters, however many code units they take', () => {
    scenario(account)
      .when(() => createAccount(4, { ...attributes, name: '👩'.repeat(255) }))
      .thenState({ id: 4 });
    scenario(account)
      .when(() => createAccount(4, { ...attributes, name: 'x'.repeat(256) }))
      .thenRejected({ fields: ['name'] });
  });

  it('is created with a trimmed name', () => {
    scenario(account)
      .when(() => createAccount(4, { ...attributes, name: ' Corner Café ' }))
      .then({ type: 'AccountCreated', data: { id: 4, ...attributes } });
  });

  it('takes its country from the request, else from the region of its locale', () => {
    const { country: _, ...unnamed } = attributes;
    for (const [locale, country] of [
      ['de', null],
      ['de-AT', 'AT'],
      ['zh-Hant-TW', 'TW'],
      ['es-419', null],
      ['sq-XK', null],
    ] as const) {
      scenario(account)
        .when(() => createAccount(4, { ...unnamed, locale }))
        .thenState({ country });
    }
    scenario(account)
      .when(() => createAccount(4, { ...attributes, locale: 'de-AT', country: 'ch' }))
      .thenState({ country: 'CH' });
    scenario(account)
      .when(() => createAccount(4, { ...attributes, locale: 'de-AT', country: null }))
      .thenState({ country: null });
    scenario(account)
      .when(() => createAccount(4, { ...attributes, country: 'UK' }))
      .thenRejected({ fields: ['country'] });
  });

  it('is its own tenant', () => {
    scenario(account)
      .when(() => createAccount(4, attributes))
      .thenState({ id: 4, accountId: 4 });
  });

  it('refuses a blank name, an unknown time zone and an invalid locale', () => {
    scenario(account)
      .when(() => createAccount(4, { ...attributes, name: '  ' }))
      .thenRejected({ fields: ['name'] });
    scenario(account)
      .when(() => createAccount(4, { ...attributes, timeZone: 'Mars/Olympus' }))
      .thenRejected({ fields: ['time_zone'] });
    scenario(account)
      .when(() => createAccount(4, { ...attributes, name: '', timeZone: '', locale: 'x' }))
      .thenRejected({ fields: ['name', 'time_zone', 'locale'] });
  });

  it('has a logo from when one was set until it is removed', () => {
    const logo = 'a'.repeat(64);
    const logoSet: AccountEvent = { type: 'AccountLogoSet', data: { picture: logo } };
    expect(scenario(account, accountCreated).state().logo).toBeNull();
    scenario(account, accountCreated)
      .when((state) => setLogo(state, logo))
      .then(logoSet);
    expect(scenario(account, accountCreated, logoSet).state().logo).toBe(logo);
    scenario(account, accountCreated, logoSet)
      .when((state) => setLogo(state, logo))
      .then();
    scenario(account, accountCreated, logoSet)
      .when(removeLogo)
      .then({ type: 'AccountLogoRemoved', data: {} });
    scenario(account, accountCreated).when(removeLogo).then();
  });

  it('normalizes contact details, and refuses what leads nowhere', () => {
    scenario(account, accountCreated)
      .when((state) =>
        updateAccount(state, { website: ' Cafe.example ', address: 'Main Street 1\r\nBerlin' }),
      )
      .then({
        type: 'AccountUpdated',
        data: { website: 'https://cafe.example/', address: 'Main Street 1\nBerlin' },
      });
    scenario(account, accountCreated)
      .when((state) => updateAccount(state, { phone: ' ', email: null }))
      .then();
    scenario(account, accountCreated)
      .when((state) =>
        updateAccount(state, { website: 'javascript:alert(1)', phone: 'call', email: 'cafe' }),
      )
      .thenRejected({ fields: ['website', 'phone', 'email'] });
  });

  it('records only what changes', () => {
    scenario(account, accountCreated)
      .when((state) => updateAccount(state, { name: 'Corner Café', storeName: 'Corner' }))
      .then({ type: 'AccountUpdated', data: { storeName: 'Corner' } });
    scenario(account, accountCreated)
      .when((state) => updateAccount(state, attributes))
      .then();
    scenario(account, accountCreated, { type: 'AccountUpdated', data: { storeName: 'Corner' } })
      .when((state) => updateAccount(state, { storeName: null }))
      .then({ type: 'AccountUpdated', data: { storeName: null } });
  });

  it('records SMS countries by existing codes, normalized, sorted and without duplicates', () => {
    expect(scenario(account, accountCreated).state().smsCountries).toEqual([]);
    scenario(account, accountCreated)
      .when((state) => updateAccount(state, { smsCountries: ['ch', ' AT', 'CH'] }))
      .then({ type: 'AccountUpdated', data: { smsCountries: ['AT', 'CH'] } });
    scenario(account, accountCreated)
      .when((state) => updateAccount(state, { smsCountries: [] }))
      .then();
    for (const code of ['XX', 'AUT', 'Austria', 'A', '43', '']) {
      scenario(account, accountCreated)
        .when((state) => updateAccount(state, { smsCountries: ['AT', code] }))
        .thenRejected({ fields: ['sms_countries'] });
    }
  });

  it('has no consent texts at first, and records all of them when one changes', () => {
    expect(scenario(account, accountCreated).state().consentTexts).toEqual(NO_CONSENT_TEXTS);
    const texts = { ...NO_CONSENT_TEXTS, marketing: 'You may write to me.' };
    const accountUpdated: AccountEvent = { type: 'AccountUpdated', data: { consentTexts: texts } };
    scenario(account, accountCreated)
      .when((state) =>
        updateAccount(state, {
          consentTexts: { ...texts, marketing: ' You may write to me.\r\n', sms: ' ' },
        }),
      )
      .then(accountUpdated);
    scenario(account, accountCreated, accountUpdated)
      .when((state) => updateAccount(state, { consentTexts: { ...texts } }))
      .then();
  });

  it('records the URL of its privacy policy as the parser normalizes it', () => {
    const privacyUrl = 'https://CAFE.example:443/a/../größe';
    const events = updateAccount(scenario(account, accountCreated).state(), {
      consentTexts: { ...NO_CONSENT_TEXTS, privacyUrl },
    });
    expect(events).toMatchObject([
      { data: { consentTexts: { privacyUrl: 'https://cafe.example/gr%C3%B6%C3%9Fe' } } },
    ]);
  });

  it.each([
    ['marketing_consent_text', { marketing: 'x'.repeat(2_001) }],
    ['sms_consent_text', { sms: 'a\0b' }],
    ['privacy_text', { privacy: '👩'.repeat(2_001) }],
    ['privacy_url', { privacyUrl: 'javascript:alert(1)' }],
    ['privacy_url', { privacyUrl: 'http://cafe.example/privacy' }],
    ['privacy_url', { privacyUrl: 'https://me:secret@cafe.example' }],
    ['privacy_url', { privacyUrl: 'https://cafe.example/privacy#customers' }],
    ['privacy_url', { privacyUrl: 'https://cafe.example/privacy ' }],
    ['privacy_url', { privacyUrl: 'https://cafe.example/pri\nvacy' }],
    ['privacy_url', { privacyUrl: 'https:cafe.example' }],
    ['privacy_url', { privacyUrl: 'https:\\\\cafe.example' }],
    ['base', { marketing: '👩'.repeat(1_500), sms: '👩'.repeat(1_000) }],
  ])('refuses invalid consent texts: %s', (field, texts) => {
    scenario(account, accountCreated)
      .when((state) => updateAccount(state, { consentTexts: { ...NO_CONSENT_TEXTS, ...texts } }))
      .thenRejected({ fields: [field] });
  });

  it('is not found when it was never created', () => {
    scenario(account)
      .when((state) => updateAccount(state, { name: 'Corner' }))
      .thenThrows(NotFoundError);
  });
});

describe('parseTimeZone', () => {
  it.each(
    'Asia/Kolkata Asia/Ho_Chi_Minh Africa/Dar_es_Salaam America/Port-au-Prince America/Knox_IN Etc/GMT+0 Etc/UTC US/East-Indiana GB-Eire NZ-CHAT W-SU EST5EDT PRC Eire Australia/ACT Brazil/DeNoronha America/Argentina/ComodRivadavia Chile/EasterIsland Mexico/BajaNorte Antarctica/McMurdo'.split(
      ' ',
    ),
  )('returns %s for each of its spellings', (name) => {
    expect([name, name.toLowerCase(), name.toUpperCase()].map(parseTimeZone)).toEqual([
      name,
      name,
      name,
    ]);
  });

  it.each([
    ['Europe/Berlin', 'Europe/Berlin'],
    ['europe/berlin', 'Europe/Berlin'],
    ['UTC', 'UTC'],
    ['Etc/UTC', 'Etc/UTC'],
    ['US/Eastern', 'US/Eastern'],
    ['Asia/Kolkata', 'Asia/Kolkata'],
    ['Etc/GMT+5', 'Etc/GMT+5'],
    ['America/Argentina/Buenos_Aires', 'America/Argentina/Buenos_Aires'],
  ])('parses %s as %s', (input, expected) => {
    expect(parseTimeZone(input)).toBe(expected);
  });

  it.each(['Mars/Olympus', '+01:00', '-0500', 'UTC+1', 'BST', 'jst', 'SystemV/AST4', '', ' '])(
    'refuses %j',
    (input) => {
      expect(parseTimeZone(input)).toBeUndefined();
    },
  );
});

describe('parseLocale', () => {
  it.each([
    ['de', 'de'],
    ['pt-br', 'pt-BR'],
    ['ZH-hant-TW', 'zh-Hant-TW'],
  ])('parses %s as %s', (input, expected) => {
    expect(parseLocale(input)).toBe(expected);
  });

  it.each(['de_DE', 'e', 'not a tag', '123', ''])('refuses %j', (input) => {
    expect(parseLocale(input)).toBeUndefined();
  });
});
