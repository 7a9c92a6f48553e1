import { createHash } from 'node:crypto';
import { canonicalJson } from '#event-store/canonical-json.js';
import type { Card } from '#cards/card.js';
import { isStripPreset } from '#cards/card-looks.js';

/** Raise it when the drawing changes: images are cached for ever under a hash that covers it. */
const DRAWING_VERSION = 3;

/** What the images of a card show, but for the number of filled stamps. */
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
  /** Of the layer over the card's colour, 0 to 100. */
  opacity: number;
};

/** @property picture its SHA-256 in hex */
export type StripLayer = { color: string } | { preset: string } | { picture: string };

/** In pixels: what phones show at their three scales (points 375 by 144), and Google's hero image. */
export const STRIP_SIZES = {
  '1x': { width: 375, height: 144 },
  '2x': { width: 750, height: 288 },
  '3x': { width: 1125, height: 432 },
  hero: { width: 1032, height: 336 },
} as const;

export type StripSize = keyof typeof STRIP_SIZES;

/** Sides in pixels of the square images that bear the card's icon: Apple's icon and logo, Google's programme logo. */
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

/** The part of a card that its images show. */
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
 * Contract section 3: `image` without a picture and `preset` without a known preset show the colour.
 * @param rewards all of the card; those that are active and within its stamps are marked
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

/** How many stamps are filled: customers may hold more than a card has. */
export function countFilledStamps(stampsCount: number, { stamps }: StripDesign): number {
  return Math.min(stampsCount, stamps);
}

/** Hex, 32 characters: names the design in URLs that never change what they show. */
export function hashDesign(design: StripDesign): string {
  return createHash('sha256').update(canonicalJson(design)).digest('hex').slice(0, 32);
}

/**
 * Public, and answered once the design was remembered by `StripImages`.
 * @param publicUrl without a trailing slash
 * @param filled see `filledStamps`
 */
export function toStripUrl(
  publicUrl: string,
  hash: string,
  filled: number,
  size: StripSize,
): string {
  return `${publicUrl}/img/strip/${hash}/${filled}@${size}.png`;
}

/** Of the programme logo, 660 pixels square; public like `stripUrl`. */
export function toLogoUrl(publicUrl: string, hash: string): string {
  return `${publicUrl}/img/logo/${hash}.png`;
}

function chooseLayer(card: StripAppearance): StripLayer {
  const { stripType, stripPicture, stripPreset, stripColor, cardColor } = card;
  if (stripType === 'image' && stripPicture !== null) return { picture: stripPicture };
  if (stripType === 'preset' && isStripPreset(stripPreset)) return { preset: stripPreset };
  return { color: stripColor ?? cardColor };
}
