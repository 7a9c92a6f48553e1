import { toPlaceKey } from './place-key.js';

/** The languages in which addresses name countries. */
const LANGUAGES =
  'ar bg ca cs da de el en es et fi fr he hr hu id is it ja ko lt lv ms nb nl pl pt ro ru sk sl sq sr sv th tr uk vi zh'.split(
    ' ',
  );

/** Names that people write but that Intl does not know. */
const OTHER_NAMES: Record<string, string> = {
  america: 'US',
  antigua: 'AG',
  'great britain': 'GB',
  holland: 'NL',
  'czech republic': 'CZ',
  'ceska republika': 'CZ',
  eire: 'IE',
  'republic of ireland': 'IE',
  рф: 'RU',
  'российская федерация': 'RU',
  'the netherlands': 'NL',
  'u k': 'GB',
  'u s': 'US',
  'u s a': 'US',
  uae: 'AE',
  uk: 'GB',
  us: 'US',
  usa: 'US',
};

const LETTERS = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZ'];
const english = new Intl.DisplayNames('en', { type: 'region', fallback: 'none' });
/** The ISO 3166 codes that Intl knows, except retired ones, whose successors have the same names. */
const CODES = new Set(
  LETTERS.flatMap((a) => LETTERS.map((b) => a + b)).filter(
    (code) => english.of(code) && new Intl.Locale(`und-${code}`).region === code,
  ),
);

let byName: Map<string, string> | undefined;

/** Finds a country by its name in any of the languages. @returns its ISO 3166 code in two letters */
export function findCountryByName(name: string): string | undefined {
  byName ??= indexCountryNames();
  return byName.get(toPlaceKey(name));
}

/** Finds a country by its code. Two capitals may also be a state of the USA. */
export function findCountryByCode(text: string): string | undefined {
  return CODES.has(text) ? text : undefined;
}

function indexCountryNames(): Map<string, string> {
  const names = new Map(Object.entries(OTHER_NAMES));
  for (const language of LANGUAGES) {
    const displayNames = new Intl.DisplayNames(language, { type: 'region', fallback: 'none' });
    for (const code of CODES) {
      const key = toPlaceKey(displayNames.of(code) ?? '');
      if (key !== '' && !names.has(key)) names.set(key, code);
    }
  }
  return names;
}
