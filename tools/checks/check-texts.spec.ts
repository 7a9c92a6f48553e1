import { spawnSync } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it } from '@jest/globals';

const ENGLISH = {
  card: { title: 'Card', stamps: '{count, plural, one {# stamp} other {# stamps}} of {name}' },
};
const GERMAN = {
  card: { title: 'Karte', stamps: '{count, number} Stempel von {name}' },
};
const DECLARATIONS = `// Generated from en.json by \`npm run rules:write\`.
/** The arguments of messages, by their path in a file of texts. */
export type MessageArguments = {
  'card.stamps': { count: number; name: string };
};
`;

/** Checks files of texts, and returns the errors. */
function check(files: Record<string, object>, declarations = DECLARATIONS): string[] {
  const folder = path.join(mkdtempSync(path.join(tmpdir(), 'texts-')));
  for (const [name, texts] of Object.entries({ 'en.json': ENGLISH, ...files }))
    writeFileSync(path.join(folder, name), JSON.stringify(texts));
  writeFileSync(path.join(folder, 'message-arguments.ts'), declarations);
  const { stderr } = spawnSync(process.execPath, ['tools/checks/check-texts.mjs', folder], {
    encoding: 'utf8',
  });
  return stderr.split('\n').filter((line) => line !== '');
}

const withStamps = (stamps: string) => ({ card: { ...GERMAN.card, stamps } });

describe('the check of texts', () => {
  it('accepts a language, and a form of address with some of its texts', () => {
    expect(
      check({ 'de.json': GERMAN, 'de@formal.json': { card: { title: 'Ihre Karte' } } }),
    ).toEqual([]);
  });

  it('names what is missing, superfluous, or of no language', () => {
    expect(
      check({ 'de.json': { card: { title: 'Karte', more: 'Mehr' } }, 'fr@formal.json': {} }),
    ).toEqual([
      'de.json: card.stamps is missing',
      'de.json: card.more is not in en.json',
      'fr@formal.json is neither a language such as de.json nor a form of one such as de@formal.json',
    ]);
  });

  it.each([
    ['{count, number} Stempel', '{ count: number }'],
    ['{count} Stempel von {name}', '{ count: string; name: string }'],
    ['Stempel', 'no arguments'],
  ])('compares the arguments of %s', (text, types) => {
    expect(check({ 'de.json': withStamps(text) })).toEqual([
      `de.json: card.stamps has ${types}, but en.json { count: number; name: string }`,
    ]);
  });

  it('insists on the plurals of the language', () => {
    const text = '{count, plural, one {#} few {#} other {#}} {name}';
    expect(check({ 'de.json': withStamps(text) })).toEqual([
      'de.json: card.stamps has the plural "few" of {count}, which is not a plural of de',
    ]);
    expect(check({ 'pl.json': withStamps(text) })).toEqual([
      'pl.json: card.stamps lacks the plural "many" of {count}',
    ]);
  });

  it('names what is blank, and what is no text', () => {
    expect(check({ 'de.json': { card: { ...GERMAN.card, title: ' ' } } })).toEqual([
      'de.json: card.title is blank',
    ]);
    expect(check({ 'de.json': { card: { ...GERMAN.card, title: null } } })).toEqual([
      'de.json: card.title is neither a text nor a section',
      'de.json: card.title is missing',
    ]);
  });

  it('names a text that cannot be parsed', () => {
    const [error] = check({ 'de.json': withStamps('{count, plural, one {#}}') });
    expect(error).toMatch(/^de.json: card.stamps is not an ICU message: /);
  });

  it('finds a type that is not up to date', () => {
    expect(check({}, '')).toEqual([
      'message-arguments.ts does not have the arguments of en.json: npm run rules:write',
    ]);
  });
});
