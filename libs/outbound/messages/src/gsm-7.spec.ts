import { describe, expect, it } from '@jest/globals';
import { toPlainText, countSeptets } from './gsm-7.js';

describe('countSeptets', () => {
  it.each([
    ['Hello', 5],
    ['@£$Çé ñ', 7],
    ['{€}', 6],
    ['a~b', 4],
    ['', 0],
  ])('returns for %j %i', (text, septets) => {
    expect(countSeptets(text)).toBe(septets);
  });

  it.each(['ç', '“', 'Ж', '😀', 'ê'])('returns undefined for %s', (text) => {
    expect(countSeptets(text)).toBeUndefined();
  });
});

describe('toPlainText', () => {
  it.each([
    ['“Ça va” – l’été…', '"Ça va" - l\'été...'],
    ['Crêpe, garçon', 'Crepe, garcon'],
    ['Œuvre', 'OEuvre'],
    ['Señor Müller', 'Señor Müller'],
    ['Dvořák', 'Dvorak'],
    ['e\u0301', 'é'],
    ['Жук', 'Жук'],
    ['Ship 🚀', 'Ship 🚀'],
  ])('turns %s into %s', (text, plain) => {
    expect(toPlainText(text)).toBe(plain);
  });
});
