import { countryNamed, countryOfCode } from './country-names.js';
import { readPart, type AddressPart } from './address-part.js';
import { placeKey } from './place-key.js';
import { findRegions } from './regions.js';

/** A country, or a region of it. */
export type Scope = { country: string; region: string | null };

/** One way to read an address. */
export type Reading = {
  /** Of which one holds the town; empty: the address names none. */
  scopes: Scope[];
  /** A country in words, and not two letters that are a state as well. */
  isCertain: boolean;
  /** What is left for the town. */
  parts: AddressPart[];
  /** How the scope is called: a town of that name may be meant too. Null: it has no name of a town. */
  scopeName: string | null;
  /** The parts are names as a whole, and no word of them alone. */
  isWhole: boolean;
};

/** What an address says about where it is, for somebody who knows places and postcodes and no streets. */
export type Address = {
  /** The likeliest first. */
  readings: Reading[];
  /** Without spaces; the longest, which says most, first. */
  postcodes: string[];
};

const MAX_PARTS = 12;
/** New South Wales, Republic of North Macedonia. */
const MAX_SCOPE_WORDS = 4;
/** Countries as they stand before a postcode: D-10115. */
const POSTAL_COUNTRIES: Record<string, string> = { A: 'AT', D: 'DE', F: 'FR', H: 'HU', I: 'IT' };

type Named = { scopes: Scope[]; isCertain: boolean };

/**
 * Reads an address from its end, where country and region stand in most countries. Who names one of them excludes all
 * towns elsewhere: there is a Toronto in Ohio, and an Ontario in California.
 */
export function readAddress(text: string): Address {
  // In small letters `me` is Maine as well.
  const texts = (text === text.toLowerCase() ? text.toUpperCase() : text)
    .split(/[,;\n]|\s[-–—]\s/u)
    .map((part) => part.trim())
    .filter((part) => placeKey(part) !== '')
    .slice(-MAX_PARTS);
  const parts = texts.map(readPart).filter((part) => part !== undefined);
  return { readings: readingsOf(parts, texts), postcodes: postcodesIn(texts) };
}

function readingsOf(parts: AddressPart[], texts: string[]): Reading[] {
  const [first, last] = [parts[0], parts.at(-1)];
  if (!first || !last) return [];
  const whole = last.kind === 'town' ? readScopes(abbreviated(last.words), parts.length, null) : [];
  if (whole.length > 0) return whole.flatMap((named) => readingsIn(named, parts, last.words));
  const ends = endsOf(last, parts, null);
  if (ends.length > 0) {
    // Baden bei Wien is not in Wien.
    const only = { ...last, tail: [] };
    return [
      { scopes: [], isCertain: false, parts: [only], scopeName: null, isWhole: true },
      ...ends,
    ];
  }
  // Россия, Москва, улица
  const country = parts.length > 1 && countryNamed(first.words.join(' '));
  if (country) return inCountry(country, parts.slice(1), null);
  const postal = texts.map((part) => /^([A-Z]{1,3})-\d{4,5}\b/.exec(part)?.[1]).find(Boolean);
  const byPostcode = postal && (POSTAL_COUNTRIES[postal] ?? countryOfCode(postal));
  if (byPostcode) return inCountry(byPostcode, parts, null);
  return [{ scopes: [], isCertain: false, parts, scopeName: null, isWhole: false }];
}

/** Two letters alone are an abbreviation in any case: Me, Tx. */
function abbreviated(words: string[]): string[] {
  const [word = ''] = words;
  return words.length === 1 && /^[a-z]{2}$/i.test(word) ? [word.toUpperCase()] : words;
}

/** What the last words of the last part name: Springfield IL, Berlin Germany. */
function endsOf(last: AddressPart, parts: AddressPart[], within: string | null): Reading[] {
  const words = last.kind === 'town' ? last.words : last.tail;
  for (let n = Math.min(MAX_SCOPE_WORDS, words.length - 1); n > 0; n--) {
    const scopes = readScopes(words.slice(-n), 2, within);
    const shorter = {
      ...last,
      words: last.words.slice(0, -n),
      tail: last.tail.slice(0, -n),
    };
    const rest = [...parts.slice(0, -1), shorter];
    const readings = scopes.flatMap((named) => readingsIn(named, [...rest, last], null));
    if (readings.length > 0) return readings;
  }
  return [];
}

/** @returns regions before the country that two letters name as well: CA, DE, IN */
function readScopes(words: string[], partCount: number, within: string | null): Named[] {
  const name = words.join(' ');
  const regions = findRegions(name).filter(({ country }) => within === null || country === within);
  const country = within === null && partCount > 1 ? countryNamed(name) : undefined;
  const coded = within === null && country === undefined ? countryOfCode(name) : undefined;
  const isIrish = within === null && regions.length === 0 && /^(co|county) ./.test(placeKey(name));
  const scopes = regions.map((region) => ({ country: region.country, region: region.code }));
  return [
    ...(scopes.length > 0 ? [{ scopes, isCertain: false }] : []),
    ...(country ? [{ scopes: [{ country, region: null }], isCertain: true }] : []),
    ...(coded ? [{ scopes: [{ country: coded, region: null }], isCertain: false }] : []),
    ...(isIrish ? [{ scopes: [{ country: 'IE', region: null }], isCertain: true }] : []),
  ];
}

/** @param parts with the one that names the scope as the last */
function readingsIn(
  { scopes, isCertain }: Named,
  parts: AddressPart[],
  words: string[] | null,
): Reading[] {
  const rest = parts.slice(0, -1);
  const scopeName = words && placeKey(words.join(' '));
  const [scope] = scopes;
  if (scope?.region === null) {
    return inCountry(scope.country, rest, scopeName).map((reading) => ({
      ...reading,
      isCertain: isCertain && reading.isCertain,
    }));
  }
  return [{ scopes, isCertain, parts: rest, scopeName, isWhole: false }];
}

function inCountry(country: string, parts: AddressPart[], scopeName: string | null): Reading[] {
  const last = parts.at(-1);
  const scopes = [{ country, region: null }];
  const plain: Reading = { scopes, isCertain: true, parts, scopeName, isWhole: false };
  if (!last) return [plain];
  const [region] = last.kind === 'town' ? readScopes(last.words, 1, country) : [];
  if (region) {
    return readingsIn(region, parts, last.words).map((reading) => ({
      ...reading,
      isCertain: true,
    }));
  }
  const ends = endsOf(last, parts, country);
  if (ends.length === 0) return [plain];
  // Baden bei Wien is not in Wien.
  const whole = { ...plain, parts: [{ ...last, tail: [] }], scopeName: null, isWhole: true };
  return [whole, ...ends.map((reading) => ({ ...reading, isCertain: true }))];
}

/** One word with a digit, or two next to each other: 20095, SW1A 2AA, 1012 AB. Not those of a street before the town. */
function postcodesIn(texts: string[]): string[] {
  const codes = (
    texts.length > 1 && !/^\d{4}/.test(texts[0] ?? '') ? texts.slice(1) : texts
  ).flatMap((part) => {
    const words = part
      .split(/[\s/()]+/)
      .map((word) => word.toUpperCase().replaceAll(/[^A-Z0-9]/g, ''));
    return words
      .flatMap((word, i) => [word, word + (words[i + 1] ?? '')])
      .filter((code) => /\d/.test(code) && code.length >= 3 && code.length <= 10);
  });
  return [...new Set(codes)].sort((a, b) => b.length - a.length);
}
