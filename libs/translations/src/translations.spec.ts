import { describe, expect, it } from '@jest/globals';
import { getTranslations, LANGUAGE_CODES } from './translations.js';

describe('getTranslations', () => {
  it('finds the language of a region', () => {
    expect(getTranslations('fr-CA')).toMatchObject({
      t: { card: { rewards: 'Récompenses' } },
      locale: 'fr-CA',
    });
  });

  it('falls back to English', () => {
    expect(getTranslations('ja').locale).toBe('en');
    expect(LANGUAGE_CODES[0]).toBe('en');
  });
});
