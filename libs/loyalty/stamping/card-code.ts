import { normalizeNumber } from '#platform/kernel/text.js';

/** Returns the code of a card however it was scanned or typed: in any case and width, in groups, with a line end. */
export function normalizeCardCode(text: string): string {
  return normalizeNumber(text)
    .normalize('NFKC')
    .replaceAll(/[\s\p{Pd}]/gu, '')
    .toUpperCase();
}
