import { Script } from 'node:vm';
import { describe, expect, it } from '@jest/globals';
import { CARD_SCRIPT } from './card-script.js';
import { WORKER_SCRIPT } from './worker-script.js';
import { findCardTranslations } from './translations.js';

describe('the scripts of browsers', () => {
  it('are valid JavaScript', () => {
    expect(() => new Script(CARD_SCRIPT.text)).not.toThrow();
    expect(() => new Script(WORKER_SCRIPT)).not.toThrow();
  });
});

describe('findCardTranslations', () => {
  it('finds four languages, and falls back to English', () => {
    expect(findCardTranslations('fr-CA').t.rewards).toBe('Récompenses');
    expect(findCardTranslations('ja').locale).toBe('en');
  });
});
