import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { getTranslations, LANGUAGE_CODES } from '#translations/translations.js';
import { toSentence } from './error-sentences.js';

const translate = (message: string, language = 'en') =>
  toSentence(message, getTranslations(language).t);

describe('toSentence', () => {
  it.each([
    ['must have at least 10 characters', 'Please use at least 10 characters.'],
    ['must have 1 to 255 characters', 'Please enter between 1 and 255 characters.'],
    [
      'has "XX", which is not a country code such as AT',
      '"XX" is not a country. Please use two letters for each, such as AT.',
    ],
    ['This invitation is for ada@x.example', 'This invitation is for ada@x.example.'],
    ['Make somebody else an owner first.', 'Make someone else an owner first.'],
  ])('says in a sentence that %s', (message, sentence) => {
    expect(translate(message)).toBe(sentence);
  });

  it('has a sentence in every language, with what varies in the message', () => {
    const sentences = LANGUAGE_CODES.map((language) =>
      translate('must have at most 2000 characters', language),
    );
    expect(new Set(sentences).size).toBe(LANGUAGE_CODES.length);
    for (const sentence of sentences) expect(sentence).toMatch(/2000.*\.$/);
  });

  it('keeps the English of a message that it does not know', () => {
    expect(translate('must rhyme')).toBe('This was not accepted: it must rhyme.');
    expect(translate('must rhyme', 'de')).toContain('it must rhyme');
  });

  it('leaves a sentence as it is, with a full stop', () => {
    expect(translate('Bitte wählen.', 'de')).toBe('Bitte wählen.');
    expect(translate('The moon is full')).toBe('The moon is full.');
    expect(translate('Wirklich?', 'de')).toBe('Wirklich?');
  });

  it('does not take a name from the prototype for a message', () => {
    expect(translate('constructor')).toBe('This was not accepted: it constructor.');
  });

  it('knows no message that the code no longer has', () => {
    const files = readdirSync('libs', { recursive: true, encoding: 'utf8' }).filter(
      (file) => file.endsWith('.ts') && !file.endsWith('message-arguments.ts'),
    );
    const source = files
      .map((file) =>
        readFileSync(`libs/${file}`, 'utf8').replaceAll(/\$\{[^}]*\}|\{\w+(?:, number)?\}/g, '{}'),
      )
      .join('\n');
    const { messages } = getTranslations('en').t.forms;
    const missing = Object.keys(messages)
      .map((message) => message.replaceAll(/\{\w+\}/g, '{}'))
      .filter((message) => !source.includes(message));
    expect(missing).toEqual([]);
  });
});
