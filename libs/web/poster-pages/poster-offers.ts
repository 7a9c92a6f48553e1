import { markLeftToRight } from '#loyalty/posters/text-direction.js';
import type { Arrangement } from './paper.js';
import type { PosterContent } from './poster-content.js';
import type { Column, Lettering, TextBlock, Typesetter } from './typesetter.js';

/** Lines that the name of a reward may take before its letters shrink. A tent's column is narrow. */
const MAX_LINES: Record<Arrangement, number> = { upright: 4, folded: 6, small: 0 };
const LEADING = 1.2;

export type OffersInput = {
  content: Pick<PosterContent, 'offers' | 'aim'>;
  arrangement: Arrangement;
  letters: Lettering;
  typesetter: Typesetter;
  column: Column;
  color: string;
};

/**
 * Lays out the rewards, each in as many lines as it needs. All have the size of the longest.
 * @param count without the ones in the middle
 * @returns undefined if one of them does not fit as a whole
 */
export function layOutOffers(
  { content, arrangement, letters, typesetter, column, color }: OffersInput,
  scale: number,
  count: number,
): TextBlock[] | undefined {
  if (count === 0) return [];
  const texts = listTexts(content, count, letters);
  const maxLines = MAX_LINES[arrangement];
  const maxSize = Math.max((texts.length === 1 ? 5.4 : 4) * scale, typesetter.minSize);
  const room = {
    width: column.width,
    minSize: Math.max(2.4 * scale, typesetter.minSize),
    maxLines,
    leading: LEADING,
    height: maxLines * maxSize * LEADING + 0.1,
  };
  const fits = texts.map((text) => typesetter.fit(text, 'bold', { ...room, maxSize }));
  // Only a gap tells the lines of one reward from those of the next.
  const gap = texts.length > 1 && fits.some(({ lines }) => lines.length > 1) ? 1.5 : 0.4;
  const size = Math.min(...fits.map((fit) => fit.size));
  const blocks = texts.map((text, index) =>
    typesetter.layOutLines(text, 'bold', {
      ...room,
      before: (index === 0 ? 2.6 : gap) * scale,
      maxSize: size,
      color,
      column,
    }),
  );
  return blocks.every(({ isWhole }) => isWhole) ? blocks : undefined;
}

function listTexts({ offers, aim }: OffersInput['content'], count: number, letters: Lettering) {
  const selected = [...offers.slice(0, Math.max(0, count - 1)), ...offers.slice(-1)];
  const texts = (count < offers.length ? selected : offers)
    .map(({ reward, price }) => ({ reward: letters.removeIllegible(reward, 'bold'), price }))
    .filter(({ reward }) => reward !== '')
    // The price is in a language that is read from the left, whatever the name of the reward begins with.
    .map(({ reward, price }) => markLeftToRight(`${reward} ${price}`));
  return texts.length > 0 ? texts : [aim];
}
