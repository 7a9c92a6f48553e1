import { computeContrast, mixColors } from '#platform/kernel/contrast.js';
import { countColors, type RgbaPixels } from './logo-plate.js';

/** Colours for a card, each as `#RRGGBB`. */
export type ProposedColors = {
  cardColor: string;
  textColor: string;
  stampColor: string;
  stampBackgroundColor: string;
};

const WHITE = '#FFFFFF';
const BLACK = '#1B1B1B';
/** WCAG 2.2, success criterion 1.4.3. */
const READABLE = 4.5;
/** Less saturated than this is grey. */
const MIN_SATURATION = 0.2;
/** Of a colour as rich as another, the share of the logo that makes it the main one. */
const MIN_SHARE = 0.02;

/**
 * Proposes colours from a logo: the card in its main colour, in a light tint of it, and in a dark shade. Text and stamps
 * are readable in each.
 */
export function proposeColors(pixels: RgbaPixels): ProposedColors[] {
  const main = findMainColor(pixels);
  const strong = darkenUntilReadable(main, WHITE);
  const dark = mixColors(BLACK, strong, 0.35);
  const tint = mixColors(WHITE, strong, 0.12);
  return [
    { cardColor: strong, textColor: WHITE, stampColor: strong, stampBackgroundColor: WHITE },
    { cardColor: tint, textColor: dark, stampColor: WHITE, stampBackgroundColor: strong },
    { cardColor: dark, textColor: WHITE, stampColor: dark, stampBackgroundColor: tint },
  ];
}

/** Finds the colour that people would name: the most frequent one that is not grey, else the most frequent. */
function findMainColor(pixels: RgbaPixels): string {
  const counts = [...countColors(pixels)].sort(([, a], [, b]) => b - a);
  const total = counts.reduce((sum, [, count]) => sum + count, 0);
  const colorful = counts.filter(
    ([color, count]) => count >= total * MIN_SHARE && computeSaturation(color) >= MIN_SATURATION,
  );
  const ranked = colorful.toSorted(
    ([one, a], [other, b]) => b * computeSaturation(other) - a * computeSaturation(one),
  );
  const [plain] = counts.filter(([color]) => computeContrast(color, WHITE) >= 1.5);
  return ranked[0]?.[0] ?? plain?.[0] ?? BLACK;
}

function darkenUntilReadable(color: string, ground: string): string {
  let darker = color;
  for (let share = 0.05; computeContrast(darker, ground) < READABLE && share <= 1; share += 0.05) {
    darker = mixColors(color, BLACK, share);
  }
  return darker;
}

/** Computes how far a colour is from grey, from 0 to 1. */
function computeSaturation(color: string): number {
  const parts = [1, 3, 5].map((at) => Number.parseInt(color.slice(at, at + 2), 16));
  const [strongest, weakest] = [Math.max(...parts), Math.min(...parts)];
  return strongest === 0 ? 0 : (strongest - weakest) / strongest;
}
