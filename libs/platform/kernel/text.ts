// Reads text as people and programs send it. What looks the same must be the same, wherever it is written, looked up or
// compared, so every text input goes through one of these functions.

/**
 * Matches characters that render as nothing: format characters (Cf), what Unicode lets fonts ignore (UAX #44, Default_Ignorable_Code_Point: the
 * Hangul fillers, the grapheme joiner, variation selectors), and blank characters that have no such property: the empty
 * braille pattern, the fillers of Khitan and Egyptian, the note without a head.
 */
const INVISIBLE = String.raw`\p{Cf}\p{Default_Ignorable_Code_Point}\u2800\u{13441}\u{13442}\u{16FE4}\u{1D159}`;
const EVERY_INVISIBLE = new RegExp(`[${INVISIBLE}]+`, 'gu');
/** NUL stays, to be refused by whoever reads the text. */
const BLANK = new RegExp(String.raw`^[\s${INVISIBLE}\x01-\x1f\x7f-\x9f]$`, 'u');
const HIDDEN = new RegExp(
  String.raw`(?![\u200C\u200D\p{Variation_Selector}\u{E0020}-\u{E007F}])[\p{Cc}${INVISIBLE}]`,
  'u',
);
/**
 * Belongs to the visible character before it: a variation selector, the name of a flag, and a joiner after a virama,
 * which decides how the last letter is written (RFC 5892, appendix A).
 */
const ATTACHED =
  /(?:\p{Variation_Selector}|(?<=\u{1F3F4})[\u{E0020}-\u{E007E}]+\u{E007F}|(?<=[\u094D\u09CD\u0A4D\u0ACD\u0B4D\u0BCD\u0C4D\u0CCD\u0D4D\u0DCA])[\u200C\u200D])/uy;
const LONGEST_ATTACHED = 32;
/**
 * Normalising takes quadratic time for marks in a row. No writing has more than thirty (UAX #15, Stream-Safe Text Format);
 * a text that does is left as it is.
 */
const TOO_MANY_MARKS = /\p{M}{31}/u;
const PRINTABLE_ASCII = /^[\x20-\x7e]*$/;
/** Nearly every text begins so, which is then not blank. */
const VISIBLE_ASCII_FIRST = /^[\x21-\x7e]/;
/** Nearly every text is so, which is then in normal form. */
const NORMAL_ASCII = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;

const DIGIT = /\p{Nd}/gu;
const ONE_DIGIT = /^\p{Nd}$/u;
/** Of Chinese and Japanese keyboards. */
const WIDE_PLUS = /[\uFF0B\uFE62]/g;

/** Returns the text in NFC, without white space and invisible characters at its ends; inside, joiners and marks stay. */
export function normalizeText(text: string): string {
  if (NORMAL_ASCII.test(text)) return text;
  const trimmed = trimText(text);
  return TOO_MANY_MARKS.test(trimmed) ? trimmed : trimmed.normalize('NFC');
}

/** Returns the text of an address, an id, a code or a search: as `normalizeText`, without invisible characters anywhere. */
export function normalizeIdentifier(text: string): string {
  return normalizeText(removeInvisible(text));
}

/** Returns an identifier in which the digits of every script, and wide plus signs, are ASCII. */
export function normalizeNumber(text: string): string {
  const plain = normalizeIdentifier(text);
  if (PRINTABLE_ASCII.test(plain)) return plain;
  return plain.replaceAll(DIGIT, asciiDigit).replaceAll(WIDE_PLUS, '+');
}

/**
 * Returns a password as OpaqueString has it (RFC 8265, section 4.2.2): every space is an ASCII space, then NFC. Nothing
 * is trimmed, and wide and narrow characters stay different.
 */
export function normalizePassword(password: string): string {
  const spaced = password.replaceAll(/\p{Zs}/gu, ' ');
  return TOO_MANY_MARKS.test(spaced) ? spaced : spaced.normalize('NFC');
}

/** Tells whether nothing of the text can be seen. */
export function isBlankText(text: string): boolean {
  return !VISIBLE_ASCII_FIRST.test(text) && trimText(text) === '';
}

export function removeInvisible(text: string): string {
  return PRINTABLE_ASCII.test(text) ? text : text.replaceAll(EVERY_INVISIBLE, '');
}

/** Tells whether there is a character that nobody can see, other than those that join emoji and letters. */
export function hasHiddenCharacter(text: string): boolean {
  return HIDDEN.test(text);
}

/** Returns the text without white space and invisible characters at its ends. Linear, however much of them there is. */
export function trimText(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end) {
    const character = String.fromCodePoint(text.codePointAt(start) ?? 0);
    if (!BLANK.test(character)) break;
    start += character.length;
  }
  while (end > start) {
    const character = lastCharacter(text, end);
    if (!BLANK.test(character)) break;
    end -= character.length;
  }
  if (start === end) return '';
  return text.slice(start, end + attachedLength(text, end));
}

/** Returns how much of what follows is part of the last visible character. */
function attachedLength(text: string, end: number): number {
  if (end === text.length) return 0;
  const before = lastCharacter(text, end);
  const around = before + text.slice(end, end + LONGEST_ATTACHED);
  ATTACHED.lastIndex = before.length;
  return ATTACHED.exec(around)?.[0].length ?? 0;
}

function lastCharacter(text: string, end: number): string {
  const unit = text.slice(end - 1, end);
  const pair = text.slice(Math.max(0, end - 2), end);
  return /^[\uD800-\uDBFF][\uDC00-\uDFFF]$/.test(pair) ? pair : unit;
}

/** Digits come in tens that begin with zero, some of them one after another (Unicode Standard, section 4.6). */
function asciiDigit(digit: string): string {
  const code = digit.codePointAt(0) ?? 0;
  let first = code;
  while (ONE_DIGIT.test(String.fromCodePoint(first - 1))) first -= 1;
  return String((code - first) % 10);
}
