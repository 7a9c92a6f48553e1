import { describe, expect, it } from '@jest/globals';
import { readEntry } from './import-row.dto.js';

const COLUMNS = [
  { name: 'Email', field: 'email' },
  { name: 'Consent', field: 'marketing_consent' },
] as const;
const readConsent = (text: string) =>
  readEntry(['ada@example.com', text], [...COLUMNS], null).entry?.changes.marketingConsent;

describe('a consent in a row of a file', () => {
  it('is given in the notations of the programs that write such files', () => {
    for (const text of [
      'yes',
      'TRUE',
      '1',
      'ja',
      'Oui',
      'sí',
      'SUBSCRIBED',
      'opted-in',
      'Opt in',
    ]) {
      expect([text, readConsent(text)]).toEqual([text, true]);
    }
  });

  it('is refused in the notations of the programs that write such files', () => {
    for (const text of ['no', 'FALSE', '0', 'nein', 'UNSUBSCRIBED', 'Opted Out', 'opt_out']) {
      expect([text, readConsent(text)]).toEqual([text, false]);
    }
  });

  it('is left as it is where nobody was asked', () => {
    for (const text of ['', 'NEVER_SUBSCRIBED', 'Not subscribed', 'pending', 'UNKNOWN', '-']) {
      expect([text, readConsent(text)]).toEqual([text, undefined]);
    }
  });

  it('is an error where it is none of these', () => {
    const { errors } = readEntry(['ada@example.com', 'perhaps'], [...COLUMNS], null);
    expect(Object.keys(errors ?? {})).toEqual(['marketing_consent']);
  });
});
