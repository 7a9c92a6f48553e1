import { computeContrast, mixColors } from '#platform/kernel/contrast.js';
import type { CardAttributes } from './card.events.js';

/** The colours that decide how well a card can be read. */
export type CardColors = Pick<
  CardAttributes,
  | 'cardColor'
  | 'textColor'
  | 'stampColor'
  | 'stampBackgroundColor'
  | 'stripType'
  | 'stripColor'
  | 'stripOpacity'
>;

export const CARD_WARNINGS = ['stamps_look_alike', 'text_hard_to_read'] as const;
export type CardWarning = (typeof CARD_WARNINGS)[number];

/** WCAG 2.2, success criteria 1.4.3 for large text and 1.4.11 for shapes. */
const VISIBLE = 3;
/** Below it nobody sees which of two stamps is filled: as black and a grey of 24 per cent. */
const DISTINCT = 1.5;
/** A stamp that is half there: where it looks like a whole one, the picture of the card has to use other colours. */
const EMPTY = { disc: 0.38, icon: 0.7 };
/** Stands for a picture, which may be light or dark behind any stamp. */
const PICTURE = '#808080';

/** Finds what people cannot see or read on a card (CARD-59). Nothing of it is refused: it is the shop's card. */
export function findCardWarnings(colors: CardColors): CardWarning[] {
  return [
    ...(hasVisibleStamps(colors) ? [] : (['stamps_look_alike'] as const)),
    ...(computeContrast(colors.textColor, colors.cardColor) >= VISIBLE
      ? []
      : (['text_hard_to_read'] as const)),
  ];
}

/** Tells whether a filled stamp is seen, and looks different from an empty one. */
function hasVisibleStamps(colors: CardColors): boolean {
  const { stampColor: icon, stampBackgroundColor: disc } = colors;
  const ground = findGround(colors);
  const emptyDisc = mixColors(ground, disc, EMPTY.disc);
  const emptyIcon = mixColors(emptyDisc, icon, EMPTY.icon);
  const isSeen = computeContrast(disc, ground) >= VISIBLE || computeContrast(icon, disc) >= VISIBLE;
  return (
    isSeen &&
    (computeContrast(disc, emptyDisc) >= DISTINCT || computeContrast(icon, emptyIcon) >= DISTINCT)
  );
}

function findGround({ stripType, stripColor, cardColor, stripOpacity }: CardColors): string {
  const layer = {
    color: stripColor ?? cardColor,
    // A drawing has the colour that tints it.
    preset: stripColor ?? PICTURE,
    image: PICTURE,
  }[stripType];
  return mixColors(cardColor, layer, stripOpacity / 100);
}
