import { randomBytes } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { createMasterKey, Keyring } from '#platform/kernel/keyring.js';
import { MasterKeys } from '#platform/database/master-keys.js';
import { pickKeptFields, type KeptForm } from './kept-form.js';
import { KeptForms } from './kept-forms.service.js';

const createKeptForms = (byte: number) => {
  const key = createMasterKey(Buffer.alloc(32, byte));
  return new KeptForms(MasterKeys.withKeys(new Keyring([key], key), new Map()));
};
const forms = createKeptForms(1);
const FORM: KeptForm = {
  path: '/app/stores/1/locations',
  fields: { name: 'Harbour Street', address: '' },
  isUpload: false,
  hadFile: false,
  hadSecret: false,
};
const USER = 7;
const NOW = new Date('2026-12-01T20:00:00Z');
const after = (hours: number) => new Date(NOW.getTime() + hours * 3_600_000);

describe('the fields that are kept of a form', () => {
  it('are those that somebody has entered', () => {
    const entered = { title: 'Hello', text: 'a\nb', 'channels:email': 'on', email: 'a@b.example' };
    expect(pickKeptFields({ ...entered, _csrf: 'x', form_key: 'y', kept_form: 'z' })).toEqual(
      entered,
    );
  });

  it.each([
    'password',
    'current_password',
    'new_password',
    'secret',
    'signing_secret',
    'token',
    'api_token',
    'headers',
    'pin',
    'code',
  ])('are never %s', (name) => {
    expect(pickKeptFields({ [name]: 'hunter2', title: 'Hello' })).toEqual({ title: 'Hello' });
    expect(pickKeptFields({ [name]: 'hunter2' })).toBeUndefined();
  });

  it('are none of a form that is only a button', () => {
    for (const form of [{}, { _csrf: 'x' }, { text: ' \n' }, { text: undefined }]) {
      expect(pickKeptFields(form)).toBeUndefined();
      expect(forms.seal({ ...FORM, fields: form }, USER, NOW)).toBeUndefined();
    }
  });
});

describe('a kept form', () => {
  it('is opened for its user alone', () => {
    const sealed = forms.seal(FORM, USER, NOW) ?? '';
    expect(forms.open(sealed, USER, NOW)).toEqual(FORM);
    expect(forms.open(sealed, 77, NOW)).toBeUndefined();
    expect(createKeptForms(2).open(sealed, USER, NOW)).toBeUndefined();
  });

  it.each(['', 'nothing', 'AAAA', '%%%'])('is not %j', (sealed) => {
    expect(forms.open(sealed, USER, NOW)).toBeUndefined();
  });

  it('is not one that somebody has changed', () => {
    const sealed = Buffer.from(forms.seal(FORM, USER, NOW) ?? '', 'base64url');
    for (let i = 0; i < sealed.length; i++) {
      const changed = Buffer.from(sealed);
      changed[i] = (changed[i] ?? 0) ^ 1;
      expect(forms.open(changed.toString('base64url'), USER, NOW)).toBeUndefined();
    }
  });

  it('ends after a day', () => {
    const sealed = forms.seal(FORM, USER, NOW) ?? '';
    expect(forms.open(sealed, USER, after(23))).toEqual(FORM);
    expect(forms.open(sealed, USER, after(25))).toBeUndefined();
  });

  it('fits into the forms that carry it, or is not kept', () => {
    const long = { ...FORM, fields: { text: 'We see you on Monday. '.repeat(2_500) } };
    expect(forms.open(forms.seal(long, USER, NOW) ?? '', USER, NOW)).toEqual(long);
    const tooLong = { ...FORM, fields: { text: randomBytes(60 * 1024).toString('base64') } };
    expect(forms.seal(tooLong, USER, NOW)).toBeUndefined();
    // It would be small enough, but is never opened.
    const expanding = { ...FORM, fields: { text: '\u0001'.repeat(60 * 1024) } };
    expect(forms.seal(expanding, USER, NOW)).toBeUndefined();
  });
});
