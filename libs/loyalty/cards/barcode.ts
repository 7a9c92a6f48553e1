import type { BarcodeFormat } from './card.events.js';
import { ISSUES } from '#translations/issues.js';
import type { Issue } from '#platform/kernel/issues.js';

/** Published: values may be added, never removed. */
export const BARCODE_FORMATS = [
  'qr',
  'aztec',
  'pdf417',
  'code128',
] as const satisfies readonly BarcodeFormat[];

/**
 * The most characters of each format that a scanner reads from the screen of a phone.
 * - A Code 128 has 11 modules a character and 55 around them. At 48 characters a module of a card 80 mm wide would be
 *   0.13 mm; scanners ask for 0.19 mm (7.5 mil), which is 20 characters.
 * - The others are two-dimensional, and limited by what stays readable at 25 mm: ISO/IEC 15438, 18004 and 24778.
 */
const MAX_LENGTHS: Record<BarcodeFormat, number> = {
  qr: 500,
  aztec: 500,
  pdf417: 200,
  code128: 20,
};

const PRINTABLE_ASCII = /^[\x20-\x7e]+$/;
/** What the `iso-8859-1` of passes can write. */
const LATIN_1 = /^[\x20-\x7e\xa0-\xff]+$/;

/** Finds why a barcode of this format cannot hold a text; undefined: it can. */
export function findBarcodeIssue(format: BarcodeFormat, text: string): Issue | undefined {
  const characters = format === 'code128' ? PRINTABLE_ASCII : LATIN_1;
  if (!characters.test(text)) {
    return format === 'code128' ? ISSUES.not_ascii : ISSUES.not_latin1;
  }
  const max = MAX_LENGTHS[format];
  return text.length > max ? ISSUES.barcode_too_long({ max, format }) : undefined;
}
