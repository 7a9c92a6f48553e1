/** 3GPP TS 23.038, 6.2.1: the characters of the default alphabet, one septet each. */
const BASIC = new Set(
  '@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !"#¤%&\'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà',
);
/** Those of the extension, two septets each. */
const EXTENSION = new Set('^{}\\[~]|€');

/** What one SMS holds that is not part of a longer one. */
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

/** @returns undefined for a text that only UCS-2 can carry */
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
 * The text with plain forms of marks, and letters without those accents that GSM-7 lacks, so that one character does not
 * more than halve what a message holds. Other scripts stay as they are.
 */
export function toPlainText(text: string): string {
  return [...text.normalize('NFC')].map(toPlainCharacter).join('');
}

function toPlainCharacter(character: string): string {
  if (BASIC.has(character) || EXTENSION.has(character)) return character;
  const plain = PLAIN.get(character) ?? character.normalize('NFD').replaceAll(/\p{M}/gu, '');
  return countSeptets(plain) === undefined ? character : plain;
}
