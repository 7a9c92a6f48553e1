import { computeContrast } from '#platform/kernel/contrast.js';
import type { Poster } from '#loyalty/posters/poster.js';

/** How a poster is drawn: with its stamps and rewards, with little more than a large code, or on a dark ground. */
export const POSTER_DESIGNS = ['rewards', 'code', 'dark'] as const;

export type PosterDesign = (typeof POSTER_DESIGNS)[number];

type Colors = Pick<Poster, 'primaryColor' | 'textColor' | 'secondaryColor'>;

const GROUND = '#17151A';
const TEXT = '#FFFFFF';
/** Of stamps, on their ground. */
const MIN_CONTRAST = 3;

export function isPosterDesign(text: unknown): text is PosterDesign {
  return POSTER_DESIGNS.some((design) => design === text);
}

/** Gives a poster the colours of a design: stamps stay in the poster's own, where they stand out. */
export function dressPoster<C extends Colors>(poster: C, design: PosterDesign): C {
  if (design !== 'dark') return poster;
  const stamps = [poster.secondaryColor, poster.primaryColor].find(
    (color) => computeContrast(color, GROUND) >= MIN_CONTRAST,
  );
  return { ...poster, primaryColor: GROUND, textColor: TEXT, secondaryColor: stamps ?? TEXT };
}
