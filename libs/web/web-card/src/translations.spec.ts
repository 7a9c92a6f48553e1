import { describe, expect, it } from '@jest/globals';
import { findCardTranslations } from './translations.js';

describe('findCardTranslations', () => {
  it('finds four languages, and falls back to English', () => {
    expect(findCardTranslations('fr-CA').t.rewards).toBe('Récompenses');
    expect(findCardTranslations('ja').locale).toBe('en');
  });
});
