/** 3GPP TS 23.038, 6.2.1: the characters of the default alphabet, one septet each. */
const BASIC = new Set(
  '@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !"#¤%&\'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà',
);
/** The characters of the extension table, two septets each. */
const EXTENSION = new Set('^{}\\[~]|€');

/** The capacity of an SMS of one segment. */
export const MAX_SMS_SEPTETS = 160;

/** The plain forms of typographic marks, by classes of characters that mean the same. */
const PLAIN_CLASSES: [characters: RegExp, plain: string][] = [
  [/[‘’‚‛‹›′‵´`ʹʻʼʽˈˊˋ❛❜]/u, "'"],
  [/[“”„‟«»″‶〝〞〟ʺ❝❞¨]/u, '"'],
  [/[\p{Pd}−⁃‒―¯]/u, '-'],
  [/[•‣◦●▪■∙]/u, '-'],
  [/[·‧⋅․]/u, '.'],
  [/[\p{Zs}\t\v\f\u0085]/u, ' '],
  [/[\u2028\u2029]/u, '\n'],
  [/[⁄∕]/u, '/'],
  [/[×✕✖]/u, 'x'],
];
/** Those of single characters, whose decomposition is none or another one. */
const PLAIN = new Map(
  Object.entries({
    '…': '...',
    '⋯': '...',
    '‥': '..',
    '÷': '/',
    '¦': '|',
    '∗': '*',
    '→': '->',
    '←': '<-',
    '≤': '<=',
    '≥': '>=',
    '±': '+/-',
    '©': '(c)',
    '®': '(R)',
    ﬅ: 'st',
    œ: 'oe',
    Œ: 'OE',
    ẞ: 'SS',
    ł: 'l',
    Ł: 'L',
    đ: 'd',
    Đ: 'D',
    ı: 'i',
  }),
);

/** Accents that stand by themselves, or on a letter that has no form with them. */
const ACCENTS = /[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]/gu;
/**
 * What nobody sees in a text of Latin letters: soft hyphens, zero-width characters, marks of direction, variants and accents
 * without a form of their own. In other scripts and in emojis they have a meaning.
 */
const INVISIBLE = new RegExp(`\\p{Cf}|\\p{Variation_Selector}|${ACCENTS.source}`, 'gu');
/** Digits that another one before them would turn into another number: ² in 10², ① in 1①. */
const OTHER_NUMBER = /\p{No}/u;
const DIGIT = /\p{Nd}$/u;

/** Counts the septets of a text. @returns undefined for a text that only UCS-2 can carry */
export function countSeptets(text: string): number | undefined {
  let septets = 0;
  for (const character of text) {
    if (BASIC.has(character)) septets += 1;
    else if (EXTENSION.has(character)) septets += 2;
    else return undefined;
  }
  return septets;
}

/** @property left how many characters more the last part takes @property used those that it has */
export type SmsSize = { alphabet: 'gsm7' | 'ucs2'; parts: number; used: number; left: number };

/** Counts the parts of an SMS. Each of several is shorter, for the header that puts them in order. */
export function measureSms(text: string): SmsSize {
  const septets = countSeptets(text);
  const [alphabet, single, part] =
    septets === undefined ? (['ucs2', 70, 67] as const) : (['gsm7', MAX_SMS_SEPTETS, 153] as const);
  const units = [...text].map((character) =>
    septets === undefined ? character.length : (countSeptets(character) ?? 0),
  );
  const length = units.reduce((sum, unit) => sum + unit, 0);
  if (length <= single) return { alphabet, parts: 1, used: length, left: single - length };
  // A character of two units is not cut in two.
  let [parts, used] = [1, 0];
  for (const unit of units) {
    if (used + unit > part) [parts, used] = [parts + 1, 0];
    used += unit;
  }
  return { alphabet, parts, used, left: part - used };
}

/**
 * Replaces marks by their plain forms, and letters whose accents GSM-7 lacks, so that one character does not more than
 * halve the capacity of a message. Leaves other scripts as they are.
 */
export function toPlainText(text: string): string {
  const characters = [...text.normalize('NFC')];
  const plain = characters
    .map((sign, i) => toPlainCharacter(sign, characters[i - 1] ?? ''))
    .join('');
  const visible = plain.replaceAll(INVISIBLE, '');
  return countSeptets(visible) === undefined ? plain : visible;
}

/** @param before the character before it, for fractions: 1½ is 1 1/2 */
function toPlainCharacter(character: string, before: string): string {
  if (BASIC.has(character) || EXTENSION.has(character)) return character;
  const plain = findPlainForm(character) ?? decompose(character);
  if (plain === '' || countSeptets(plain) === undefined) return character;
  if (!OTHER_NUMBER.test(character) || !DIGIT.test(before)) return plain;
  return plain.includes('/') ? ` ${plain}` : character;
}

function findPlainForm(character: string): string | undefined {
  const [, plain] = PLAIN_CLASSES.find(([characters]) => characters.test(character)) ?? [];
  return plain ?? PLAIN.get(character);
}

/** Takes a character apart: a letter from its accents, and into the letters of a ligature or the digits of a fraction. */
function decompose(character: string): string {
  return character.normalize('NFKD').replaceAll(ACCENTS, '').replaceAll('⁄', '/');
}
