import { countryNamed, countryOfCode } from './country-names.js';
import { placeKey } from './place-key.js';

/** What an address says about where it is, for somebody who knows places and postcodes and no streets. */
export type Address = {
  /** ISO 3166, two letters; null: it names none. */
  country: string | null;
  /** Only its letters say so: they may be a state as well. */
  countryIsGuess: boolean;
  /** What may be the town, the likeliest first. */
  places: string[];
  /** Without spaces; the longest, which says most, first. */
  postcodes: string[];
  /** Abbreviations in capitals, of which one may be the state. */
  states: string[];
};

/** Frankfurt am Main, Villanueva de la Serena. */
const MOST_WORDS = 5;
/** The country is the town. */
const CITY_STATES = new Set(['GI', 'HK', 'MC', 'MO', 'SG', 'SM', 'VA']);
const MOST_PARTS = 12;
const MOST_WORDS_IN_PART = 20;

/** As addresses are written nearly everywhere: the street first, then the town, and the country last. */
export function readAddress(text: string): Address {
  const parts = text
    .split(/[,;\n]/)
    .map((part) => part.trim())
    .filter((part) => placeKey(part) !== '')
    .slice(-MOST_PARTS);
  const last = parts.at(-1) ?? '';
  const named = parts.length > 1 ? countryNamed(last) : undefined;
  const country = named ?? countryOfCode(last) ?? null;
  const left = country === null ? parts : parts.slice(0, -1);
  // The street, unless there is nothing else.
  const likely = (left.length > 1 ? left.slice(1) : left).toReversed();
  const words = likely.map((part) => part.split(/[\s/()]+/).slice(-MOST_WORDS_IN_PART));
  const shouts = text === text.toUpperCase();
  return {
    country,
    countryIsGuess: named === undefined && country !== null,
    places: unique([
      ...words.flatMap((part) => placesIn(part, shouts)),
      ...(country !== null && CITY_STATES.has(country) ? [placeKey(last)] : []),
    ]),
    postcodes: unique(words.flatMap(postcodesIn)).sort((a, b) => b.length - a.length),
    states: unique([...words.flat(), last].filter(isAbbreviation)),
  };
}

/** The same without a country that only its two letters suggest. */
export function withoutGuess(address: Address): Address {
  return { ...address, country: null, countryIsGuess: false };
}

/** Every run of words, longest first, and of the same length the later ones first. */
function placesIn(part: string[], shouts: boolean): string[] {
  const words = part
    .filter((word) => !/\d/.test(word) && (shouts || !isAbbreviation(word)))
    .flatMap((word) => placeKey(word).split(' '))
    .filter((key) => key !== '');
  const runs: string[] = [];
  for (let length = Math.min(words.length, MOST_WORDS); length > 0; length--) {
    for (let start = words.length - length; start >= 0; start--) {
      runs.push(words.slice(start, start + length).join(' '));
    }
  }
  return runs;
}

/** One word with a digit, or two next to each other: 20095, SW1A 2AA, 1012 AB. */
function postcodesIn(part: string[]): string[] {
  const words = part.map((word) => word.toUpperCase().replaceAll(/[^A-Z0-9]/g, ''));
  return words
    .flatMap((word, i) => [word, word + (words[i + 1] ?? '')])
    .filter((code) => /\d/.test(code) && code.length >= 3 && code.length <= 10);
}

function isAbbreviation(word: string): boolean {
  return /^[A-Z]{2,3}$/.test(word);
}

function unique(texts: string[]): string[] {
  return [...new Set(texts)];
}
