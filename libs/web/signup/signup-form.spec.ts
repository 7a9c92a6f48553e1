import { describe, expect, it } from '@jest/globals';
import { NO_CONSENT_TEXTS } from '#loyalty/accounts/consent-texts.js';
import { findLatestBirthday, parseSignup, hashTexts, type FormSpec } from './signup-form.js';

const NOW = new Date('2026-03-01T12:00:00.000Z');
const NONCE = 'A'.repeat(22);

const TEXTS = { ...NO_CONSENT_TEXTS, marketing: 'You may write to me.', sms: 'And by text.' };

function createSpec(
  poster: Partial<FormSpec['poster']> = {},
  store: Partial<FormSpec['store']> = {},
): FormSpec {
  return {
    poster: {
      contactCollectionMode: 'email_and_phone',
      requireEmail: false,
      requirePhone: false,
      requireBirthday: false,
      minimumAge: null,
      ...poster,
    },
    store: {
      timeZone: 'UTC',
      locale: 'en',
      addressForm: null,
      country: null,
      consentTexts: NO_CONSENT_TEXTS,
      ...store,
    },
  };
}

const GRACE = { first_name: 'Grace', email: 'grace@navy.example', nonce: NONCE };

function findErrors(form: Record<string, string>, spec = createSpec()) {
  const result = parseSignup({ ...GRACE, ...form }, spec, NOW);
  return 'errors' in result ? result.errors : undefined;
}

function findSignup(form: Record<string, string>, spec = createSpec()) {
  const result = parseSignup({ ...GRACE, ...form }, spec, NOW);
  return 'signup' in result ? result.signup : undefined;
}

describe('parseSignup', () => {
  it('returns the signup without needless spaces', () => {
    expect(
      findSignup({ first_name: ' Grace  M. ', last_name: 'Hopper\n', phone: '+49 30 1234567' }),
    ).toEqual({
      nonce: NONCE,
      firstName: 'Grace M.',
      lastName: 'Hopper',
      email: 'grace@navy.example',
      phone: '+49301234567',
      birthday: null,
      agreed: { marketing: null, sms: null },
    });
  });

  it.each([
    '\u202A+49 30 1234567\u202C',
    '＋４９ ３０ １２３４５６７',
    '+٤٩ ٣٠ ١٢٣٤٥٦٧',
    '(+49) 30 1234567',
    '0049\u200B30 1234567',
    '030\u00A0١٢٣٤٥٦٧',
    '０３０ー１２３４５６７',
  ])('parses the phone number %j', (phone) => {
    const german = createSpec({}, { country: 'DE' });
    expect(findSignup({ phone }, german)?.phone).toBe('+49301234567');
  });

  it.each([
    '030 FLOWERS',
    '030 1234567 x5',
    '4.91711E+11',
    '030 12345, 030 67890',
    '4930123456.0',
    '+4930123456.00',
    '4930123456,0',
  ])('refuses the phone number %j', (phone) => {
    const german = createSpec({}, { country: 'DE' });
    expect(findErrors({ phone }, german)?.fields).toEqual({ phone: 'phoneUnfit' });
    expect(findErrors({ phone })?.fields).toEqual({ phone: 'phoneUnfit' });
  });

  it('ignores invisible characters', () => {
    const form = {
      first_name: '\u200BJose\u0301 \u3164',
      last_name: '\u3164\u200E',
      email: '\u202Agrace@\u200Bnavy.example\u202C',
      birthday: '\u200E١٩٩٠-05-31',
    };
    expect(findSignup(form, createSpec({ requireBirthday: true }))).toMatchObject({
      firstName: 'José',
      lastName: null,
      email: 'grace@navy.example',
      birthday: '1990-05-31',
    });
    for (const blank of ['\u200B', '\u3164', '\u2800 \u200F']) {
      expect(findErrors({ first_name: blank })?.fields).toEqual({ first_name: 'nameMissing' });
      expect(findErrors({ email: blank })).toEqual({ form: 'contactMissing', fields: {} });
    }
  });

  it('leaves out what the poster does not collect, whatever is sent', () => {
    const mail = createSpec({ contactCollectionMode: 'email_only' });
    expect(findSignup({ phone: '+49301234567', birthday: '1990-05-31' }, mail)).toMatchObject({
      phone: null,
      birthday: null,
    });
  });

  it.each([
    ['', 'nameMissing'],
    ['x'.repeat(101), 'nameUnfit'],
    ['Win at https://evil.example', 'nameUnfit'],
    ['www.evil.example', 'nameUnfit'],
    ['me@evil.example', 'nameUnfit'],
    ['<b>', 'nameUnfit'],
    ['a\u0007b', 'nameUnfit'],
  ])('refuses the first name %j as %s', (first_name, error) => {
    expect(findErrors({ first_name })).toEqual({ form: 'marked', fields: { first_name: error } });
  });

  it.each(['O’Hara-Łukasz Jr.', '李', 'José', 'Dr. N. W. W. Wright'])(
    'accepts the first name %s',
    (name) => {
      expect(findSignup({ first_name: name })?.firstName).toBe(name);
    },
  );

  it('requires the contacts that the poster requires, and at least one', () => {
    const both = createSpec({ requireEmail: true, requirePhone: true });
    expect(findErrors({ email: '' }, both)?.fields).toEqual({
      email: 'emailMissing',
      phone: 'phoneMissing',
    });
    expect(findErrors({ email: '' })).toEqual({ form: 'contactMissing', fields: {} });
    expect(findSignup({ email: '', phone: '+49301234567' })?.phone).toBe('+49301234567');
  });

  it.each(['grace', 'grace@', 'grace@navy', 'a b@c.example', 'a@b.example, c@d.example'])(
    'refuses the e-mail address %s',
    (email) => {
      expect(findErrors({ email })?.fields).toEqual({ email: 'emailUnfit' });
    },
  );

  it('refuses ticked consents when the texts have changed since they were shown', () => {
    const spec = createSpec({}, { consentTexts: TEXTS });
    const ticked = { phone: '+49301234567', marketing_consent: 'yes', sms_consent: 'yes' };
    expect(findErrors({ ...ticked, texts: 'another' }, spec)?.form).toBe('textsChanged');
    expect(findSignup({ texts: 'another' }, spec)?.agreed).toEqual({ marketing: null, sms: null });
    const texts = hashTexts(TEXTS);
    expect(findSignup({ ...ticked, texts }, spec)?.agreed).toEqual({
      marketing: TEXTS.marketing,
      sms: TEXTS.sms,
    });
    expect(findSignup({ ...ticked, texts, phone: '' }, spec)?.agreed.sms).toBeNull();
  });

  it('records no consent when the store asks for none', () => {
    const texts = hashTexts(NO_CONSENT_TEXTS);
    expect(findSignup({ marketing_consent: 'yes', texts })?.agreed.marketing).toBeNull();
  });

  it('refuses a form without a valid nonce, or with the trap field filled in', () => {
    for (const nonce of ['', 'short', `${NONCE}=`]) {
      expect(findErrors({ nonce })?.form).toBe('stale');
    }
    expect(findErrors({ website: 'x' })?.form).toBe('filledTrap');
  });
});

describe('a birthday', () => {
  const createBirthdaySpec = (minimumAge: number | null = null, timeZone = 'UTC') =>
    createSpec({ requireBirthday: true, minimumAge }, { timeZone });
  const findError = (birthday: string, spec = createBirthdaySpec()) =>
    findErrors({ birthday }, spec)?.fields.birthday;

  it.each([
    ['', 'birthdayMissing'],
    ['31.5.1990', 'birthdayUnfit'],
    ['1990-13-01', 'birthdayUnfit'],
    ['2001-02-29', 'birthdayUnfit'],
    ['1890-01-01', 'birthdayUnfit'],
    ['2026-03-02', 'birthdayFuture'],
  ])('of %j is refused as %s', (birthday, expected) => {
    expect(findError(birthday)).toBe(expected);
  });

  it('is read from three numbers, in the digits of any script', () => {
    const spec = createSpec({ requireBirthday: true });
    const parts = { birthday_day: '٣', birthday_month: '5', birthday_year: '1990' };
    expect(findSignup(parts, spec)?.birthday).toBe('1990-05-03');
    expect(findErrors({ ...parts, birthday_day: '31', birthday_month: '2' }, spec)?.fields).toEqual(
      {
        birthday: 'birthdayUnfit',
      },
    );
    expect(findErrors({ ...parts, birthday_year: '' }, spec)?.fields).toEqual({
      birthday: 'birthdayUnfit',
    });
  });

  it('may be today in the time zone of the store', () => {
    expect(findError('2026-03-01')).toBeUndefined();
    expect(findError('2026-03-02', createBirthdaySpec(null, 'Pacific/Kiritimati'))).toBeUndefined();
    expect(findError('2026-03-01', createBirthdaySpec(null, 'Pacific/Pago_Pago'))).toBeUndefined();
  });

  it('is accepted from the day on which the minimum age is reached', () => {
    expect(findError('2010-03-01', createBirthdaySpec(16))).toBeUndefined();
    expect(findError('2010-03-02', createBirthdaySpec(16))).toBe('tooYoung');
    expect(findError('2010-03-02', createBirthdaySpec(16, 'Pacific/Kiritimati'))).toBeUndefined();
  });

  it('on 29 February counts from 1 March in years without that day', () => {
    expect('2008-02-29' <= findLatestBirthday('2026-02-28', 18)).toBe(false);
    expect('2008-02-29' <= findLatestBirthday('2026-03-01', 18)).toBe(true);
    expect('2006-02-28' <= findLatestBirthday('2024-02-29', 18)).toBe(true);
  });
});
