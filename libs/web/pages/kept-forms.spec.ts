import { randomBytes } from 'node:crypto';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
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
};
const USER = 7;

afterEach(() => void jest.restoreAllMocks());

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
      expect(forms.seal({ ...FORM, fields: form }, USER)).toBeUndefined();
    }
  });
});

describe('a kept form', () => {
  it('is opened for its user alone', () => {
    const sealed = forms.seal(FORM, USER) ?? '';
    expect(forms.open(sealed, USER)).toEqual(FORM);
    expect(forms.open(sealed, 77)).toBeUndefined();
    expect(createKeptForms(2).open(sealed, USER)).toBeUndefined();
  });

  it.each(['', 'nothing', 'AAAA', '%%%'])('is not %j', (sealed) => {
    expect(forms.open(sealed, USER)).toBeUndefined();
  });

  it('is not one that somebody has changed', () => {
    const sealed = Buffer.from(forms.seal(FORM, USER) ?? '', 'base64url');
    for (let i = 0; i < sealed.length; i++) {
      const changed = Buffer.from(sealed);
      changed[i] = (changed[i] ?? 0) ^ 1;
      expect(forms.open(changed.toString('base64url'), USER)).toBeUndefined();
    }
  });

  it('ends after a day', () => {
    const sealed = forms.seal(FORM, USER) ?? '';
    const now = Date.now();
    jest.spyOn(Date, 'now').mockReturnValue(now + 23 * 3_600_000);
    expect(forms.open(sealed, USER)).toEqual(FORM);
    jest.spyOn(Date, 'now').mockReturnValue(now + 25 * 3_600_000);
    expect(forms.open(sealed, USER)).toBeUndefined();
  });

  it('fits into the forms that carry it, or is not kept', () => {
    const long = { ...FORM, fields: { text: 'We see you on Monday. '.repeat(2_500) } };
    expect(forms.open(forms.seal(long, USER) ?? '', USER)).toEqual(long);
    const tooLong = { ...FORM, fields: { text: randomBytes(60 * 1024).toString('base64') } };
    expect(forms.seal(tooLong, USER)).toBeUndefined();
  });
});
