import { Script } from 'node:vm';
import { describe, expect, it } from '@jest/globals';
import { CARD_SCRIPT } from './card-script.js';
import { WORKER_SCRIPT } from './worker-script.js';
import { cardLanguages, findCardTranslations } from './translations.js';

describe('what browsers run', () => {
  it('is JavaScript', () => {
    expect(() => new Script(CARD_SCRIPT.text)).not.toThrow();
    expect(() => new Script(WORKER_SCRIPT)).not.toThrow();
  });
});

describe('wordsOf', () => {
  it('knows four languages, and tells the others in English', () => {
    expect([...cardLanguages].sort()).toEqual(['de', 'en', 'es', 'fr']);
    expect(findCardTranslations('fr-CA').t.rewards).toBe('Récompenses');
    expect(findCardTranslations('ja').locale).toBe('en');
  });
});
