import { describe, expect, it } from '@jest/globals';
import { NO_CONSENT_TEXTS } from '#accounts/consent-texts.js';
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
      country: null,
      consentTexts: NO_CONSENT_TEXTS,
      ...store,
    },
  };
}

const GRACE = { first_name: 'Grace', email: 'grace@navy.example', nonce: NONCE };

function faultsOf(form: Record<string, string>, of = createSpec()) {
  const read = parseSignup({ ...GRACE, ...form }, of, NOW);
  return 'faults' in read ? read.faults : undefined;
}

function signupOf(form: Record<string, string>, of = createSpec()) {
  const read = parseSignup({ ...GRACE, ...form }, of, NOW);
  return 'signup' in read ? read.signup : undefined;
}

describe('a signup form', () => {
  it('becomes what was said in it, without needless spaces', () => {
    expect(
      signupOf({ first_name: ' Grace  M. ', last_name: 'Hopper\n', phone: '+49 30 1234567' }),
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
  ])('reads the number %j', (phone) => {
    const german = createSpec({}, { country: 'DE' });
    expect(signupOf({ phone }, german)?.phone).toBe('+49301234567');
  });

  it.each(['030 FLOWERS', '030 1234567 x5', '4.91711E+11', '030 12345, 030 67890'])(
    'refuses %j as a number',
    (phone) => {
      const german = createSpec({}, { country: 'DE' });
      expect(faultsOf({ phone }, german)?.fields).toEqual({ phone: 'phoneUnfit' });
      expect(faultsOf({ phone })?.fields).toEqual({ phone: 'phoneUnfit' });
    },
  );

  it('takes what cannot be seen for nothing', () => {
    const form = {
      first_name: '\u200BJose\u0301 \u3164',
      last_name: '\u3164\u200E',
      email: '\u202Agrace@\u200Bnavy.example\u202C',
      birthday: '\u200E١٩٩٠-05-31',
    };
    expect(signupOf(form, createSpec({ requireBirthday: true }))).toMatchObject({
      firstName: 'José',
      lastName: null,
      email: 'grace@navy.example',
      birthday: '1990-05-31',
    });
    for (const blank of ['\u200B', '\u3164', '\u2800 \u200F']) {
      expect(faultsOf({ first_name: blank })?.fields).toEqual({ first_name: 'nameMissing' });
      expect(faultsOf({ email: blank })).toEqual({ form: 'contactMissing', fields: {} });
    }
  });

  it('leaves out what the poster does not collect, whatever is sent', () => {
    const mail = createSpec({ contactCollectionMode: 'email_only' });
    expect(signupOf({ phone: '+49301234567', birthday: '1990-05-31' }, mail)).toMatchObject({
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
  ])('does not take %j for a name', (first_name, fault) => {
    expect(faultsOf({ first_name })).toEqual({ form: 'marked', fields: { first_name: fault } });
  });

  it.each(['O’Hara-Łukasz Jr.', '李', 'José', 'Dr. N. W. W. Wright'])(
    'takes %s for a name',
    (name) => {
      expect(signupOf({ first_name: name })?.firstName).toBe(name);
    },
  );

  it('needs the contacts that the poster requires, and one of them at least', () => {
    const both = createSpec({ requireEmail: true, requirePhone: true });
    expect(faultsOf({ email: '' }, both)?.fields).toEqual({
      email: 'emailMissing',
      phone: 'phoneMissing',
    });
    expect(faultsOf({ email: '' })).toEqual({ form: 'contactMissing', fields: {} });
    expect(signupOf({ email: '', phone: '+49301234567' })?.phone).toBe('+49301234567');
  });

  it.each(['grace', 'grace@', 'grace@navy', 'a b@c.example', 'a@b.example, c@d.example'])(
    'does not take %s for an e-mail address',
    (email) => {
      expect(faultsOf({ email })?.fields).toEqual({ email: 'emailUnfit' });
    },
  );

  it('does not take boxes as ticked below other texts than those that were shown', () => {
    const of = createSpec({}, { consentTexts: TEXTS });
    const ticked = { phone: '+49301234567', marketing_consent: 'yes', sms_consent: 'yes' };
    expect(faultsOf({ ...ticked, texts: 'another' }, of)?.form).toBe('textsChanged');
    expect(signupOf({ texts: 'another' }, of)?.agreed).toEqual({ marketing: null, sms: null });
    const texts = hashTexts(TEXTS);
    expect(signupOf({ ...ticked, texts }, of)?.agreed).toEqual({
      marketing: TEXTS.marketing,
      sms: TEXTS.sms,
    });
    expect(signupOf({ ...ticked, texts, phone: '' }, of)?.agreed.sms).toBeNull();
  });

  it('agrees to nothing where the store asks for nothing', () => {
    const texts = hashTexts(NO_CONSENT_TEXTS);
    expect(signupOf({ marketing_consent: 'yes', texts })?.agreed.marketing).toBeNull();
  });

  it('has to carry a number that was drawn for it', () => {
    for (const nonce of ['', 'short', `${NONCE}=`]) {
      expect(faultsOf({ nonce })?.form).toBe('stale');
    }
    expect(faultsOf({ website: 'x' })?.form).toBe('filledTrap');
  });
});

describe('a birthday', () => {
  const of = (minimumAge: number | null = null, timeZone = 'UTC') =>
    createSpec({ requireBirthday: true, minimumAge }, { timeZone });
  const fault = (birthday: string, spec = of()) => faultsOf({ birthday }, spec)?.fields.birthday;

  it.each([
    ['', 'birthdayMissing'],
    ['31.5.1990', 'birthdayUnfit'],
    ['1990-13-01', 'birthdayUnfit'],
    ['2001-02-29', 'birthdayUnfit'],
    ['1890-01-01', 'birthdayUnfit'],
    ['2026-03-02', 'birthdayUnfit'],
  ])('cannot be %j', (birthday, expected) => {
    expect(fault(birthday)).toBe(expected);
  });

  it('may be today, wherever the store is', () => {
    expect(fault('2026-03-01')).toBeUndefined();
    expect(fault('2026-03-02', of(null, 'Pacific/Kiritimati'))).toBeUndefined();
    expect(fault('2026-03-01', of(null, 'Pacific/Pago_Pago'))).toBeUndefined();
  });

  it('is old enough from the day on', () => {
    expect(fault('2010-03-01', of(16))).toBeUndefined();
    expect(fault('2010-03-02', of(16))).toBe('tooYoung');
    expect(fault('2010-03-02', of(16, 'Pacific/Kiritimati'))).toBeUndefined();
  });

  it('on 29 February counts from 1 March in other years', () => {
    expect('2008-02-29' <= findLatestBirthday('2026-02-28', 18)).toBe(false);
    expect('2008-02-29' <= findLatestBirthday('2026-03-01', 18)).toBe(true);
    expect('2006-02-28' <= findLatestBirthday('2024-02-29', 18)).toBe(true);
  });
});
