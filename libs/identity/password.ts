import { hasHiddenCharacter, normalizePassword } from '#platform/kernel/text.js';
import { isKeyboardWalk } from './keyboard-walk.js';
import { ISSUES } from '#translations/issues.js';
import type { Issue } from '#platform/kernel/issues.js';

export const MIN_PASSWORD_LENGTH = 10;
const MAX_PASSWORD_LENGTH = 1000;
/** Ignores shorter words, which are parts of too many others. */
const MIN_WORD_LENGTH = 4;
/** Limits the letters besides words that anybody would try. */
const MAX_OTHER_LETTERS = 3;
/** Words of the service, and of what it is for, in the languages of its pages. */
const SERVICE_WORDS = [
  'inkpad stamp card loyalty customer reward password',
  'stempel karte treue kunde kunden bonus prämie passwort kennwort',
  'tampon carte fidélité fidelite client motdepasse passe',
  'sello tarjeta fidelidad cliente premio contraseña contrasena clave',
].flatMap((words) => words.split(' '));
const LETTERS = new Map(
  [...'0o1i3e4a5s7t8b@a$s!i'].flatMap((character, i, all) =>
    i % 2 === 0 ? [[character, all[i + 1] ?? ''] as const] : [],
  ),
);
const ENDS = /^[^\p{L}]+|[^\p{L}]+$/gu;

/** Describes the user of a new password. */
export type PasswordOwner = {
  email: string;
  name: string;
  /** The names of their stores. */
  stores: readonly string[];
};

/** In lower case. */
export type CommonPasswords = Pick<ReadonlySet<string>, 'has'>;

/**
 * Checks a new password. Length counts, not the kinds of characters (NIST SP 800-63B, section 5.1.1.2). Refuses common
 * passwords, and words of the service or its user, also with digits and signs around them.
 *
 * @returns why a new password is refused
 */
export function findPasswordIssue(
  input: string,
  owner: PasswordOwner,
  common: CommonPasswords,
): Issue | undefined {
  const password = normalizePassword(input);
  // RFC 8264, section 9: keyboards do not type them, so a user who pasted one could not sign in elsewhere.
  if (hasHiddenCharacter(password)) return ISSUES.invisible_characters;
  const { length } = [...password];
  if (length < MIN_PASSWORD_LENGTH) {
    return ISSUES.too_short({ min: MIN_PASSWORD_LENGTH });
  }
  if (length > MAX_PASSWORD_LENGTH) return ISSUES.too_long({ max: MAX_PASSWORD_LENGTH });
  const plain = password.normalize('NFKC').toLowerCase();
  if (new Set(plain).size < MIN_WORD_LENGTH || isRepeated(plain) || isSequence(plain)) {
    return ISSUES.password_repetitive;
  }
  if (listSpellings(plain).some((spelling) => common.has(spelling))) {
    return ISSUES.password_common;
  }
  if (isKeyboardWalk(plain)) {
    return ISSUES.password_repetitive;
  }
  const words = listContextWords(owner);
  if (listSpellings(plain).some((spelling) => isMadeOf(spelling, words, common))) {
    return ISSUES.password_personal;
  }
  return undefined;
}

/** Lists the text as it is and with letters for look-alike digits, each also without signs and digits at its ends. */
function listSpellings(text: string): string[] {
  const inner = text.replaceAll(ENDS, '');
  return [
    text,
    inner,
    ...[text, inner].map(replaceLookalikes),
    replaceLookalikes(text).replaceAll(ENDS, ''),
  ];
}

function replaceLookalikes(text: string): string {
  return [...text].map((character) => LETTERS.get(character) ?? character).join('');
}

/** Lists the words of name, address and stores: the parts, the whole, and the parts joined. */
function listContextWords({ email, name, stores }: PasswordOwner): string[] {
  const texts = [...SERVICE_WORDS, email, ...email.split('@'), name, ...stores].map((text) =>
    text.normalize('NFKC').toLowerCase(),
  );
  const words = texts.flatMap((text) => {
    const parts = text.split(/[^\p{L}\p{N}]+/u);
    return [text, parts.join(''), ...parts];
  });
  return [...new Set(words)]
    .filter((word) => [...word].length >= MIN_WORD_LENGTH)
    .sort((one, other) => other.length - one.length);
}

/** Tells whether little is left without the words, or a common password is. */
function isMadeOf(text: string, words: string[], common: CommonPasswords): boolean {
  const rest = words.reduce((left, word) => left.replaceAll(word, ' '), text);
  if (rest === text) return false;
  const others = rest.replaceAll(/[^\p{L}]+/gu, '');
  const signs = rest.replaceAll(/[\p{L}\p{N}\s]+/gu, '');
  return common.has(others) || (others.length <= MAX_OTHER_LETTERS && signs.length <= 2);
}

/** Tells whether the text repeats a shorter password. */
export function isRepeated(text: string): boolean {
  const unit = /^(.+?)\1+$/su.exec(text)?.[1];
  return unit !== undefined && [...unit].length < MIN_PASSWORD_LENGTH;
}

/** Recognizes sequences such as 12345678901 or zyxwvutsrq, and 2468: people try no digits with larger steps. */
export function isSequence(text: string): boolean {
  const codes = [...text].map((character) => character.codePointAt(0) ?? 0);
  const isOnlyDigits = /^\d+$/.test(text);
  const steps = codes.slice(1).map((code, i) => {
    const step = code - (codes[i] ?? 0);
    return isOnlyDigits ? (step + 10) % 10 : step;
  });
  const [step = 0] = steps;
  return new Set(steps).size === 1 && (!isOnlyDigits || Math.min(step, 10 - step) <= 2);
}
