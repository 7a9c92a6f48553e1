import { describe, expect, it } from '@jest/globals';
import { readCatalogues, type Catalogue } from './catalogues.js';
import { getTranslations, LANGUAGE_CODES } from './translations.js';

describe('getTranslations', () => {
  it('formats numbers and plurals as the locale does', () => {
    const render = (locale: string, count: number) =>
      getTranslations(locale).t.stamps.count({ count });
    expect(render('en', 1)).toBe('1 stamp');
    expect(render('en-IN', 123_456)).toBe('1,23,456 stamps');
    expect(render('de', 1234)).toBe('1.234 Stempel');
    // Which apostrophe it is depends on the data of Node.js.
    expect(render('de-CH', 1234)).toMatch(/^1['’]234 Stempel$/);
    expect(render('fr', 0)).toBe('0 tampon');
  });

  it('shows values as they are, and quoted braces without their quotation marks', () => {
    const { t } = getTranslations('en');
    expect(t.card.about({ store: "<b>{O'Neil}</b> # ''" })).toBe(
      "Stamp card of <b>{O'Neil}</b> # ''",
    );
    expect(t.cardPages.messagesHint).toContain('You can use {stamps} for');
  });

  it('keeps no texts for every locale that it was ever asked for', () => {
    const { t } = getTranslations('de-AT');
    expect(getTranslations('de-AT').t).toBe(t);
    for (let i = 0; i < 200; i++) getTranslations(`de-x-${i}`);
    expect(getTranslations('de-AT').t).not.toBe(t);
  });

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

it('French punctuation starts no line: its space is U+202F, but plain in SMS', () => {
  const listTexts = (catalogue: Catalogue): string[] =>
    Object.entries(catalogue).flatMap(([name, text]) =>
      typeof text === 'object' ? listTexts(text) : name === 'sms' ? [] : [text],
    );
  const texts = ['fr', 'fr@informal'].flatMap((name) =>
    listTexts(readCatalogues().get(name) ?? {}),
  );
  expect(texts.join('\n')).toMatch(/«\u202f/);
  expect(texts.filter((text) => / [:;!?»]|« /.test(text))).toEqual([]);
});
