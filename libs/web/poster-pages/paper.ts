import type { PosterAttributes } from '#loyalty/posters/poster.events.js';

export type PaperSize = PosterAttributes['paperSize'];

/** How a poster is arranged: below its code, or on both halves of a sheet that is folded, or with hardly more than a code. */
export type Arrangement = 'upright' | 'folded' | 'small';

export type Paper = { width: number; height: number; arrangement: Arrangement };

/** The paper sizes, upright, in points of 1/72 inch. */
export const PAPERS: Record<PaperSize, Paper> = {
  a3: { width: 841.89, height: 1190.55, arrangement: 'upright' },
  a4: { width: 595.28, height: 841.89, arrangement: 'upright' },
  a5: { width: 419.53, height: 595.28, arrangement: 'upright' },
  a6: { width: 297.64, height: 419.53, arrangement: 'upright' },
  letter: { width: 612, height: 792, arrangement: 'upright' },
  table_tent: { width: 595.28, height: 841.89, arrangement: 'folded' },
  sticker: { width: 283.46, height: 283.46, arrangement: 'small' },
};

/** The bleed of 3 mm: the ground extends beyond the edge, so that an inexact cut shows no white. */
export const BLEED = 8.5;
/** The space for crop marks beyond the bleed. */
export const MARKS = 17;

export function isPaperSize(text: string): text is PaperSize {
  return Object.hasOwn(PAPERS, text);
}
