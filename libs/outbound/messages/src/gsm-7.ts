/** 3GPP TS 23.038, 6.2.1: the characters of the default alphabet, one septet each. */
const BASIC = new Set(
  '@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !"#¤%&\'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà',
);
/** The characters of the extension table, two septets each. */
const EXTENSION = new Set('^{}\\[~]|€');

/** The capacity of an SMS of one segment. */
export const MAX_SMS_SEPTETS = 160;

/** Typographic marks that have a plain form. */
const PLAIN = new Map(
  Object.entries({
    '’': "'",
    '‘': "'",
    '“': '"',
    '”': '"',
    '„': '"',
    '«': '"',
    '»': '"',
    '–': '-',
    '—': '-',
    '…': '...',
    '·': '.',
    '\u00a0': ' ',
    '\u202f': ' ',
    œ: 'oe',
    Œ: 'OE',
  }),
);

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

/**
 * Replaces marks by their plain forms, and letters whose accents GSM-7 lacks, so that one character does not more than
 * halve the capacity of a message. Leaves other scripts as they are.
 */
export function toPlainText(text: string): string {
  return [...text.normalize('NFC')].map(toPlainCharacter).join('');
}

function toPlainCharacter(character: string): string {
  if (BASIC.has(character) || EXTENSION.has(character)) return character;
  const plain = PLAIN.get(character) ?? character.normalize('NFD').replaceAll(/\p{M}/gu, '');
  return countSeptets(plain) === undefined ? character : plain;
}
