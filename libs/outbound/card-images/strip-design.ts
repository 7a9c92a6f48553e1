import { createHash } from 'node:crypto';
import { toCanonicalJson } from '#platform/event-store/port/canonical-json.js';
import type { Card } from '#loyalty/cards/card.js';
import { chooseLayer, type StripLayer } from '#loyalty/cards/stamp-colors.js';
import type { LogoDesign } from './logo-design.js';

/** Raise it when the drawing changes: the hash under which images are cached for ever covers it. */
const DRAWING_VERSION = 5;

/** Everything that the images of a card show, except the number of filled stamps. */
export type StripDesign = {
  drawing: number;
  /** 1 to 21. */
  stamps: number;
  /** The stamps at which a reward is due, counted from 1, ascending. */
  rewards: number[];
  icon: string;
  stampColor: string;
  stampBackgroundColor: string;
  cardColor: string;
  layer: StripLayer;
  /** The opacity of the layer over the card's colour, 0 to 100. */
  opacity: number;
};

/** Sizes in pixels: the three scales of phones (375 by 144 points), and Google's hero image. */
export const STRIP_SIZES = {
  '1x': { width: 375, height: 144 },
  '2x': { width: 750, height: 288 },
  '3x': { width: 1125, height: 432 },
  hero: { width: 1032, height: 336 },
} as const;

export type StripSize = keyof typeof STRIP_SIZES;

/** Sides in pixels of the square images with the card's icon: Apple's icon and logo, Google's programme logo. */
export const ICON_SIZES = {
  'icon@1x': 29,
  'icon@2x': 58,
  'icon@3x': 87,
  'logo@1x': 50,
  'logo@2x': 100,
  'logo@3x': 150,
  program: 660,
} as const;

export type IconSize = keyof typeof ICON_SIZES;

/** The fields of a card that its images show. */
export type StripAppearance = Pick<
  Card,
  | 'stampsRequired'
  | 'stampIcon'
  | 'stampColor'
  | 'stampBackgroundColor'
  | 'cardColor'
  | 'stripType'
  | 'stripColor'
  | 'stripOpacity'
  | 'stripPreset'
  | 'stripPicture'
>;

/**
 * Creates the design of a card.
 * @param rewards all of the card; the active ones within its stamps are marked
 */
export function createStripDesign(
  card: StripAppearance,
  rewards: readonly { stampsRequired: number; active: boolean }[],
): StripDesign {
  const rewardStamps = rewards
    .filter(({ active, stampsRequired }) => active && stampsRequired <= card.stampsRequired)
    .map(({ stampsRequired }) => stampsRequired);
  return {
    drawing: DRAWING_VERSION,
    stamps: card.stampsRequired,
    rewards: [...new Set(rewardStamps)].sort((a, b) => a - b),
    icon: card.stampIcon,
    stampColor: card.stampColor,
    stampBackgroundColor: card.stampBackgroundColor,
    cardColor: card.cardColor,
    layer: chooseLayer(card),
    opacity: card.stripOpacity,
  };
}

/** Counts the filled stamps. Customers may have more stamps than a card shows. */
export function countFilledStamps(stampsCount: number, { stamps }: StripDesign): number {
  return Math.min(stampsCount, stamps);
}

/** Hashes a design into 32 hex characters. They name it in URLs whose image never changes. */
export function hashDesign(design: StripDesign | LogoDesign): string {
  return createHash('sha256').update(toCanonicalJson(design)).digest('hex').slice(0, 32);
}

/**
 * Returns the public URL of a strip. It works once `CardImages` has stored the design.
 * @param publicUrl without a trailing slash
 * @param filled see `countFilledStamps`
 */
export function toStripUrl(
  publicUrl: string,
  hash: string,
  filled: number,
  size: StripSize,
): string {
  return `${publicUrl}/img/strip/${hash}/${filled}@${size}.png`;
}

/** Returns the URL of the programme logo, 660 pixels square; public like `toStripUrl`. */
export function toLogoUrl(publicUrl: string, hash: string): string {
  return `${publicUrl}/img/logo/${hash}.png`;
}
