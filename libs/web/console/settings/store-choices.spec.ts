import { describe, expect, it } from '@jest/globals';
import { listLanguages, listTimeZones } from './store-choices.js';

describe('the time zones', () => {
  const findText = (value: string, locale = 'de', current = '') =>
    listTimeZones(current, locale === 'de' ? 'Andere' : 'Other', locale)
      .flatMap(({ group, options }) => options.map((option) => ({ group, ...option })))
      .filter((option) => option.value === value)
      .map(({ group, text }) => `${group}: ${text}`);

  it.each([
    ['Europe/Vienna', 'Europa: Österreich'],
    ['Europe/Berlin', 'Europa: Deutschland'],
    ['Europe/Kiev', 'Europa: Ukraine, Kyiv'],
    ['America/Godthab', 'Amerika: Grönland, Nuuk'],
    ['America/Buenos_Aires', 'Amerika: Argentinien, Buenos Aires'],
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
    expect(findText('Mars/Olympus', 'en', 'Mars/Olympus')).toEqual(['Other: Mars/Olympus']);
  });

  it.each([
    ['Europe/Kyiv', 'Europe/Kiev', 'Europe: Ukraine, Kyiv'],
    ['Asia/Kolkata', 'Asia/Calcutta', 'Asia: India'],
    ['America/Argentina/Buenos_Aires', 'America/Buenos_Aires', 'Americas: Argentina, Buenos Aires'],
  ])('have an alias that a store uses in place of their own name: %s', (alias, name, text) => {
    expect(findText(alias, 'en', alias)).toEqual([text]);
    expect(findText(name, 'en', alias)).toEqual([]);
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
