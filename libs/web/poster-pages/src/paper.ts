import type { PosterAttributes } from '#posters/poster.events.js';

export type PaperSize = PosterAttributes['paperSize'];
export type Paper = { name: string; width: number; height: number };

/** The paper sizes, upright, in points of 1/72 inch. */
export const PAPERS: Record<PaperSize, Paper> = {
  a4: { name: 'A4', width: 595.28, height: 841.89 },
  a5: { name: 'A5', width: 419.53, height: 595.28 },
  a6: { name: 'A6', width: 297.64, height: 419.53 },
  letter: { name: 'Letter', width: 612, height: 792 },
};

/** The bleed of 3 mm: the ground extends beyond the edge, so that an inexact cut shows no white. */
export const BLEED = 8.5;
/** The space for crop marks beyond the bleed. */
export const MARKS = 17;

export function isPaperSize(text: string): text is PaperSize {
  return Object.hasOwn(PAPERS, text);
}
