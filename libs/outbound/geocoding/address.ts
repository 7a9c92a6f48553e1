import { findCountryByName, findCountryByCode } from './country-names.js';
import { parseAddressPart, type AddressPart } from './address-part.js';
import { toPlaceKey } from './place-key.js';
import { findRegions } from './regions.js';

/** A country, or one of its regions. */
export type Scope = { country: string; region: string | null };

/** One interpretation of an address. */
export type Reading = {
  /** One of them contains the town; empty: the address names none. */
  scopes: Scope[];
  /** Whether the country is named in words, and not by two letters that may also be a state. */
  isCertain: boolean;
  /** The parts that may name the town. */
  parts: AddressPart[];
  /** The name of the scope, which may also be the name of the town. Null: it cannot be a town. */
  scopeName: string | null;
  /** Whether only the whole parts are names, and not single words of them. */
  isWhole: boolean;
};

/** An address as a gazetteer reads it, which knows places and postcodes but no streets. */
export type ParsedAddress = {
  /** The most likely first. */
  readings: Reading[];
  /** Without spaces; the longest first, because it is the most specific. */
  postcodes: string[];
};

const MAX_PARTS = 12;
/** New South Wales, Republic of North Macedonia. */
const MAX_SCOPE_WORDS = 4;
/** Codes of countries before a postcode: D-10115. */
const POSTAL_COUNTRIES: Record<string, string> = { A: 'AT', D: 'DE', F: 'FR', H: 'HU', I: 'IT' };

type NamedScopes = { scopes: Scope[]; isCertain: boolean };

/**
 * Parses an address from its end, where most countries write region and country. If it names one of them, it excludes
 * all towns elsewhere: there is a Toronto in Ohio, and an Ontario in California.
 */
export function parseAddress(text: string): ParsedAddress {
  // In lower case, `me` may also be Maine.
  const texts = (text === text.toLowerCase() ? text.toUpperCase() : text)
    .split(/[,;\n]|\s[-–—]\s/u)
    .map((part) => part.trim())
    .filter((part) => toPlaceKey(part) !== '')
    .slice(-MAX_PARTS);
  const parts = texts.map(parseAddressPart).filter((part) => part !== undefined);
  return { readings: listReadings(parts, texts), postcodes: findPostcodes(texts) };
}

function listReadings(parts: AddressPart[], texts: string[]): Reading[] {
  const [first, last] = [parts[0], parts.at(-1)];
  if (!first || !last) return [];
  const wholeScopes =
    last.kind === 'town' ? findScopes(capitalizeAbbreviation(last.words), parts.length, null) : [];
  if (wholeScopes.length > 0)
    return wholeScopes.flatMap((named) => listScopeReadings(named, parts, last.words));
  const endReadings = findEndReadings(last, parts, null);
  if (endReadings.length > 0) {
    // Baden bei Wien is not in Wien.
    const lastWithoutTail = { ...last, tail: [] };
    return [
      { scopes: [], isCertain: false, parts: [lastWithoutTail], scopeName: null, isWhole: true },
      ...endReadings,
    ];
  }
  // Россия, Москва, улица
  const country = parts.length > 1 && findCountryByName(first.words.join(' '));
  if (country) return listCountryReadings(country, parts.slice(1), null);
  const postalCountry = texts
    .map((part) => /^([A-Z]{1,3})-\d{4,5}\b/.exec(part)?.[1])
    .find(Boolean);
  const countryByPostcode =
    postalCountry && (POSTAL_COUNTRIES[postalCountry] ?? findCountryByCode(postalCountry));
  if (countryByPostcode) return listCountryReadings(countryByPostcode, parts, null);
  return [{ scopes: [], isCertain: false, parts, scopeName: null, isWhole: false }];
}

/** Capitalizes two letters alone, which are an abbreviation in any case: Me, Tx. */
function capitalizeAbbreviation(words: string[]): string[] {
  const [word = ''] = words;
  return words.length === 1 && /^[a-z]{2}$/i.test(word) ? [word.toUpperCase()] : words;
}

/** Finds readings whose scope is named by the last words of the last part: Springfield IL, Berlin Germany. */
function findEndReadings(
  last: AddressPart,
  parts: AddressPart[],
  within: string | null,
): Reading[] {
  const words = last.kind === 'town' ? last.words : last.tail;
  for (let n = Math.min(MAX_SCOPE_WORDS, words.length - 1); n > 0; n--) {
    const scopes = findScopes(words.slice(-n), 2, within);
    const shorter = {
      ...last,
      words: last.words.slice(0, -n),
      tail: last.tail.slice(0, -n),
    };
    const shortenedParts = [...parts.slice(0, -1), shorter];
    const readings = scopes.flatMap((named) =>
      listScopeReadings(named, [...shortenedParts, last], null),
    );
    if (readings.length > 0) return readings;
  }
  return [];
}

/** Finds scopes by name. Two letters may name a region and a country; regions come first: CA, DE, IN. */
function findScopes(words: string[], partCount: number, within: string | null): NamedScopes[] {
  const name = words.join(' ');
  const regions = findRegions(name).filter(({ country }) => within === null || country === within);
  const country = within === null && partCount > 1 ? findCountryByName(name) : undefined;
  const countryByCode =
    within === null && country === undefined ? findCountryByCode(name) : undefined;
  const isIrish =
    within === null && regions.length === 0 && /^(co|county) ./.test(toPlaceKey(name));
  const scopes = regions.map((region) => ({ country: region.country, region: region.code }));
  return [
    ...(scopes.length > 0 ? [{ scopes, isCertain: false }] : []),
    ...(country ? [{ scopes: [{ country, region: null }], isCertain: true }] : []),
    ...(countryByCode
      ? [{ scopes: [{ country: countryByCode, region: null }], isCertain: false }]
      : []),
    ...(isIrish ? [{ scopes: [{ country: 'IE', region: null }], isCertain: true }] : []),
  ];
}

/** @param parts of which the last one names the scope */
function listScopeReadings(
  { scopes, isCertain }: NamedScopes,
  parts: AddressPart[],
  words: string[] | null,
): Reading[] {
  const otherParts = parts.slice(0, -1);
  const scopeName = words && toPlaceKey(words.join(' '));
  const [scope] = scopes;
  if (scope?.region === null) {
    return listCountryReadings(scope.country, otherParts, scopeName).map((reading) => ({
      ...reading,
      isCertain: isCertain && reading.isCertain,
    }));
  }
  return [{ scopes, isCertain, parts: otherParts, scopeName, isWhole: false }];
}

function listCountryReadings(
  country: string,
  parts: AddressPart[],
  scopeName: string | null,
): Reading[] {
  const last = parts.at(-1);
  const scopes = [{ country, region: null }];
  const plainReading: Reading = { scopes, isCertain: true, parts, scopeName, isWhole: false };
  if (!last) return [plainReading];
  const [region] = last.kind === 'town' ? findScopes(last.words, 1, country) : [];
  if (region) {
    return listScopeReadings(region, parts, last.words).map((reading) => ({
      ...reading,
      isCertain: true,
    }));
  }
  const endReadings = findEndReadings(last, parts, country);
  if (endReadings.length === 0) return [plainReading];
  // Baden bei Wien is not in Wien.
  const wholeReading = {
    ...plainReading,
    parts: [{ ...last, tail: [] }],
    scopeName: null,
    isWhole: true,
  };
  return [wholeReading, ...endReadings.map((reading) => ({ ...reading, isCertain: true }))];
}

/** Finds one word with a digit, or two adjacent ones: 20095, SW1A 2AA, 1012 AB. Skips a street before the town. */
function findPostcodes(texts: string[]): string[] {
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
