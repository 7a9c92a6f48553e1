import { describe, expect, it } from '@jest/globals';
import { listLanguages, listTimeZones } from './store-choices.js';

describe('the time zones', () => {
  const findText = (value: string, locale = 'de', current = '') =>
    listTimeZones(current, 'Andere', locale)
      .flatMap(({ group, options }) => options.map((option) => ({ group, ...option })))
      .filter((option) => option.value === value)
      .map(({ group, text }) => `${group}: ${text}`);

  it.each([
    ['Europe/Vienna', 'Europa: Österreich'],
    ['Europe/Berlin', 'Europa: Deutschland'],
    ['Europe/Kiev', 'Europa: Ukraine, Kyiv'],
    ['America/Godthab', 'Amerika: Grönland, Nuuk'],
    ['America/Argentina/Buenos_Aires', 'Amerika: Argentinien, Buenos Aires'],
    ['UTC', 'Andere: UTC'],
  ])('have the country in the language of the page: %s', (value, text) => {
    expect(findText(value)).toEqual([text]);
  });

  it('include the current one, once', () => {
    expect(findText('America/Indiana/Knox', 'en')).toEqual([]);
    expect(findText('America/Indiana/Knox', 'en', 'America/Indiana/Knox')).toEqual([
      'Americas: United States, Knox',
    ]);
    expect(findText('Europe/Vienna', 'en', 'Europe/Vienna')).toEqual(['Europe: Austria']);
  });
});

describe('the languages', () => {
  it.each([
    ['', ['English', 'German', 'Spanish', 'French', 'Dutch']],
    ['de', ['English', 'German', 'Spanish', 'French', 'Dutch']],
    ['de-AT', ['English', 'Austrian German', 'Spanish', 'French', 'Dutch']],
    ['pt-BR', ['English', 'German', 'Spanish', 'French', 'Dutch', 'Brazilian Portuguese']],
  ])('have the current one %j in place of the same without a country', (current, texts) => {
    expect(listLanguages(current, 'en').map(({ text }) => text)).toEqual(texts);
  });
});
