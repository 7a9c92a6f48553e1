import { toPlaceKey } from './place-key.js';

/** The part of an address between two commas. */
export type AddressPart = {
  /** Words without postcodes and numbers, in their original spelling. */
  words: string[];
  /**
   * `town` begins with a postcode or has no mark of a street. `street` has a house number or a word such as Road.
   * `district` may also be a street, because a number is its only mark: Dublin 2, Marktplatz 1.
   */
  kind: 'town' | 'street' | 'district';
  hasPostcode: boolean;
  /** Words after the street in the same part: Wien in `Hauptstr. 1 Wien`. */
  tail: string[];
  /** Words before the street in the same part: Budapest Széchenyi in `1051 Budapest Széchenyi tér 5.` */
  head: string[];
};

const MAX_WORDS = 20;

/** Words before the name of a street, or of something smaller than a town. */
const STREET_BEFORE = new Set(
  'al aleja aleje alameda apt av avda avenida bd blvd c calle calz calzada camino carrera carretera chemin col colonia corso d fracc km largo loc local os pl plac piazza placa plaza praca pza strasse quai r rodovia route rua rue suite travessa ul ulica unit via viale vicolo д дом кв корп корпус наб набережная пер переулок пл площадь пр просп проспект стр ул улица'.split(
    ' ',
  ),
);
/** Words after the name of a street. */
const STREET_AFTER = new Set(
  'ave avenue boulevard blvd dr drive highway hwy kerulet korut krt lane ln parkway pkwy rd rakpart road st str strasse straat street ter ut utca utja бульвар наб набережная пер переулок площадь пр просп проспект ул улица шоссе'.split(
    ' ',
  ),
);
const STREET_ENDING = /.(strasse|str|gasse|platz|allee|weg|straat|laan|plein|gracht|gatan)$/u;
/** Words before the name of a town that are not part of it. */
const TOWN_WORDS = new Set(['г', 'гор', 'город', 'miasto']);

/** Words that announce a postcode. */
const POSTCODE_WORDS = new Set(['c p', 'cep', 'cp', 'pin', 'plz', 'zip']);

const HOUSE_NUMBER = /^(n[oº°]?\.?)?\d{1,3}[a-z]?([-–/.]\d+[a-z]?)*\.?$/iu;

/** Parses a part of an address. @returns undefined when it has only numbers and punctuation */
export function parseAddressPart(text: string): AddressPart | undefined {
  const tokens = text
    .replace(/^г[.](?=\S)/u, 'г. ')
    .split(/[\s/()]+/u)
    .filter((token) => toPlaceKey(token) !== '')
    .slice(-MAX_WORDS);
  const postcodeTokens = countPostcodeTokens(tokens);
  const remaining = tokens.slice(postcodeTokens);
  const words = extractNames(remaining);
  if (words.length === 0) return undefined;
  // 1600 Pennsylvania Avenue, but 67433 Neustadt an der Weinstraße.
  const isTown = postcodeTokens > 0 && !remaining.some(isStreetWord);
  const streetLikelihood = isTown ? 'no' : classifyStreet(remaining);
  return {
    words,
    kind: streetLikelihood === 'no' ? 'town' : streetLikelihood === 'yes' ? 'street' : 'district',
    hasPostcode: postcodeTokens > 0 && streetLikelihood === 'no',
    tail: streetLikelihood === 'no' ? [] : findTail(remaining),
    head: streetLikelihood === 'no' ? [] : findHead(remaining, postcodeTokens > 0),
  };
}

/** Counts the leading tokens that are a postcode: 20095, 110 00, 2511 BL, CH-8001, 00-001. */
function countPostcodeTokens(tokens: string[]): number {
  const [first = '', second = ''] = tokens;
  if (/^\d{3}$/.test(first) && /^\d{2,3}$/.test(second)) return 2;
  if (!/^([A-Z]{1,3}-)?\d{4,}$|^\d{2,5}-\d{2,4}$/.test(first)) return 0;
  return /^\d{4}$/.test(first) && /^[A-Z]{2}$/.test(second) && tokens.length > 2 ? 2 : 1;
}

function classifyStreet(tokens: string[]): 'yes' | 'maybe' | 'no' {
  if (tokens.some((token, i) => hasStreetWord(token, i))) return 'yes';
  const [first = ''] = tokens;
  if (tokens.length > 1 && HOUSE_NUMBER.test(first)) return 'yes';
  const last = tokens.at(-1) ?? '';
  const before = tokens.at(-2) ?? '';
  if (tokens.length > 1 && HOUSE_NUMBER.test(last) && !/\d/.test(before)) return 'maybe';
  // Hauptplatz 1 Wien
  return tokens.slice(1, -1).some((token) => HOUSE_NUMBER.test(token)) ? 'yes' : 'no';
}

function hasStreetWord(token: string, index: number): boolean {
  return STREET_ENDING.test(toPlaceKey(token)) || isStreetWord(token, index);
}

function isStreetWord(token: string, index: number): boolean {
  const key = toPlaceKey(token);
  // St. Gallen is not a street.
  return index === 0 ? STREET_BEFORE.has(key) : STREET_AFTER.has(key);
}

function findTail(tokens: string[]): string[] {
  const end = tokens.findLastIndex((token) => !/\d/.test(token)) + 1;
  const inner = tokens.slice(0, end);
  const number = inner.findLastIndex((token) => HOUSE_NUMBER.test(token));
  const word = inner.findLastIndex(
    (token, i) =>
      i > 0 && (STREET_AFTER.has(toPlaceKey(token)) || STREET_ENDING.test(toPlaceKey(token))),
  );
  const postcode = inner.findLastIndex((token) => /^\d{4,}$/.test(token));
  // 1 Rue de Rivoli 75001 Paris, but 350 5th Ave New York 10118 NY.
  const from = Math.max(number > 0 ? number : -1, word) < 0 ? postcode : Math.max(number, word);
  return from <= 0 ? [] : extractNames(inner.slice(from + 1));
}

/** Finds the words before a street, if a house number follows it: `1600` in `1600 Paris Avenue` is not a postcode. */
function findHead(tokens: string[], hasPostcode: boolean): string[] {
  if (!HOUSE_NUMBER.test(tokens.at(-1) ?? '')) return [];
  const before = tokens.findIndex((token, i) => i > 0 && STREET_BEFORE.has(toPlaceKey(token)));
  if (before > 0) return extractNames(tokens.slice(0, before));
  return hasPostcode ? extractNames(tokens) : [];
}

function extractNames(tokens: string[]): string[] {
  const words = tokens.filter(
    (token) => !/\d/.test(token) && !POSTCODE_WORDS.has(toPlaceKey(token)),
  );
  return TOWN_WORDS.has(toPlaceKey(words[0] ?? '')) ? words.slice(1) : words;
}
