import { describe, expect, it } from '@jest/globals';
import { ISSUES } from '#translations/issues.js';
import { getTranslations, LANGUAGE_CODES } from '#translations/translations.js';
import { toFieldSentences, toSentence } from './error-sentences.js';

describe('toSentence', () => {
  const { t } = getTranslations('en');

  it('fills in the parameters of an issue', () => {
    expect(toSentence(ISSUES.too_long({ max: 255 }), t)).toBe('Please use at most 255 characters.');
    expect(toSentence(ISSUES.country_of_list_unknown({ code: '"XX"' }), t)).toBe(
      '"XX" is not a country. Please use two letters for each, such as AT.',
    );
    expect(toSentence(ISSUES.too_many_attempts({ minutes: 1 }), t)).toMatch(/in a minute\.$/);
  });

  it('has another sentence in every language, with the parameters', () => {
    const sentences = LANGUAGE_CODES.map((language) =>
      toSentence(ISSUES.too_long({ max: 200 }), getTranslations(language).t),
    );
    expect(new Set(sentences).size).toBe(LANGUAGE_CODES.length);
    for (const sentence of sentences) expect(sentence).toMatch(/200.*\.$/);
  });

  it('ends every sentence like one, in every language', () => {
    const params = new Proxy({}, { get: () => 7, has: () => true });
    const incomplete = LANGUAGE_CODES.flatMap((language) =>
      Object.values(ISSUES)
        .map((issue) => (typeof issue === 'function' ? issue(params as never) : issue))
        .map((issue) => [language, issue.code, toSentence(issue, getTranslations(language).t)])
        .filter(
          ([, code, sentence = '']) =>
            !/[.?]$/.test(sentence) && code !== 'email_not_changeable_ask',
        ),
    );
    expect(incomplete).toEqual([]);
  });
});

it('toFieldSentences says what several issues have in common once', () => {
  const { t } = getTranslations('en');
  const issues = {
    mapping: [
      ISSUES.column_ambiguous({ field: 'a', names: 'b' }),
      ISSUES.column_ambiguous({ field: 'c', names: 'd' }),
    ],
  };
  expect(toFieldSentences(issues, t)).toEqual({
    mapping: [toSentence(issues.mapping[0] ?? ISSUES.blank, t)],
  });
});
