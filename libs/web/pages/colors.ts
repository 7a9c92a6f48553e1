import { computeContrast } from '#platform/kernel/contrast.js';

const BLACK = '#000000';
const WHITE = '#FFFFFF';
/** WCAG 2.2, success criterion 1.4.3: for text of any size. */
const READABLE = 4.5;

/** Returns the colour if it is readable on this ground, else black or white. Both as `#RRGGBB`. */
export function pickReadableColor(ground: string, color: string): string {
  if (computeContrast(ground, color) >= READABLE) return color;
  return computeContrast(ground, BLACK) > computeContrast(ground, WHITE) ? BLACK : WHITE;
}
