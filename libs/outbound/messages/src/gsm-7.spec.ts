import { describe, expect, it } from '@jest/globals';
import { toPlainText, countSeptets } from './gsm-7.js';

describe('septets', () => {
  it.each([
    ['Hello', 5],
    ['@£$Çé ñ', 7],
    ['{€}', 6],
    ['a~b', 4],
    ['', 0],
  ])('of %j are %i', (text, septets) => {
    expect(countSeptets(text)).toBe(septets);
  });

  it.each(['ç', '“', 'Ж', '😀', 'ê'])('carry no %s', (text) => {
    expect(countSeptets(text)).toBeUndefined();
  });
});

describe('a plain text', () => {
  it.each([
    ['“Ça va” – l’été…', '"Ça va" - l\'été...'],
    ['Crêpe, garçon', 'Crepe, garcon'],
    ['Œuvre', 'OEuvre'],
    ['Señor Müller', 'Señor Müller'],
    ['Dvořák', 'Dvorak'],
    ['e\u0301', 'é'],
    ['Жук', 'Жук'],
    ['Ship 🚀', 'Ship 🚀'],
  ])('of %s is %s', (text, plain) => {
    expect(toPlainText(text)).toBe(plain);
  });
});
