import { createHash } from 'node:crypto';
import { canonicalJson } from '#event-store/canonical-json.js';
import type { Card } from '#cards/card.js';
import { gridOf, STRIP, type Cell } from './stamp-grid.js';
import { STAMP_ICON_PATHS } from './stamp-icons.js';
import { isPreset, presetSvg } from './strip-presets.js';

/** Raise it when the drawing changes: images are cached for ever under a hash that covers it. */
const DRAWING = 1;

/** What a strip image shows but for the stamps that are filled. */
export type StripDesign = {
  drawing: typeof DRAWING;
  /** 1 to 21. */
  stamps: number;
  /** The stamps that unlock a reward, counted from 1. */
  rewards: number[];
  icon: string;
  stampColor: string;
  stampBackgroundColor: string;
  cardColor: string;
  layer: { color: string } | { preset: string } | { picture: string };
  /** Of the layer over the card's colour, 0 to 100. */
  opacity: number;
};

/** Pixels of the image for a phone's scale, and for Google's hero image. */
export const STRIP_SIZES = {
  '1x': { width: 375, height: 144 },
  '2x': { width: 750, height: 288 },
  '3x': { width: 1125, height: 432 },
  hero: { width: 1032, height: 336 },
} as const;

export type StripSize = keyof typeof STRIP_SIZES;

type Looks = Pick<
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
> & { stripPicture: string | null };

/**
 * Contract section 3: `image` without a picture and `preset` without a known preset show the colour.
 * @param rewards thresholds of the active rewards
 */
export function stripDesignOf(card: Looks, rewards: number[]): StripDesign {
  const { stampsRequired } = card;
  const marked = new Set(rewards.filter((threshold) => threshold <= stampsRequired));
  return {
    drawing: DRAWING,
    stamps: stampsRequired,
    rewards: [...marked].sort((a, b) => a - b),
    icon: card.stampIcon,
    stampColor: card.stampColor,
    stampBackgroundColor: card.stampBackgroundColor,
    cardColor: card.cardColor,
    layer: layerOf(card),
    opacity: card.stripOpacity,
  };
}

function layerOf({ stripType, stripPicture, stripPreset, stripColor, cardColor }: Looks) {
  if (stripType === 'image' && stripPicture !== null) return { picture: stripPicture };
  if (stripType === 'preset' && isPreset(stripPreset)) return { preset: stripPreset };
  return { color: stripColor ?? cardColor };
}

/** Hex, 32 characters: names the design in URLs that never change what they show. */
export function designHash(design: StripDesign): string {
  return createHash('sha256').update(canonicalJson(design)).digest('hex').slice(0, 32);
}

/**
 * @param filled stamps that the card holds; more than it takes fill all of them
 * @param picture the layer's picture in exactly this size, as a data URI
 */
export function stripSvg(
  design: StripDesign,
  filled: number,
  { width, height }: { width: number; height: number },
  picture?: string,
): string {
  // The drawing covers an image of other proportions, as a phone fills the strip's place.
  const scale = Math.max(width / STRIP.width, height / STRIP.height);
  const x = (width - STRIP.width * scale) / 2;
  const y = (height - STRIP.height * scale) / 2;
  const place = `translate(${x} ${y}) scale(${scale})`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}">`,
    `<rect width="${width}" height="${height}" fill="${design.cardColor}"/>`,
    `<g opacity="${design.opacity / 100}">${layerSvg(design, { width, height }, place, picture)}</g>`,
    `<g transform="${stampsPlace(width, height)}">${stampsSvg(design, filled)}</g>`,
    '</svg>',
  ].join('');
}

function layerSvg(
  { layer }: StripDesign,
  { width, height }: { width: number; height: number },
  place: string,
  picture: string | undefined,
): string {
  if ('color' in layer) return `<rect width="${width}" height="${height}" fill="${layer.color}"/>`;
  if ('preset' in layer) {
    return isPreset(layer.preset) ? `<g transform="${place}">${presetSvg(layer.preset)}</g>` : '';
  }
  if (picture === undefined) throw new Error('the picture of the design is needed to draw it');
  return `<image width="${width}" height="${height}" href="${picture}"/>`;
}

/** Stamps must all be visible, so they are fitted into the image instead of covering it. */
function stampsPlace(width: number, height: number): string {
  const scale = Math.min(width / STRIP.width, height / STRIP.height);
  const x = (width - STRIP.width * scale) / 2;
  const y = (height - STRIP.height * scale) / 2;
  return `translate(${x} ${y}) scale(${scale})`;
}

function stampsSvg(design: StripDesign, filled: number): string {
  const { cell, centres } = gridOf(design.stamps);
  const rewards = new Set(design.rewards);
  return centres
    .map((centre, index) =>
      stampSvg(design, centre, cell, { filled: index < filled, reward: rewards.has(index + 1) }),
    )
    .join('');
}

function stampSvg(
  { icon, stampColor, stampBackgroundColor }: StripDesign,
  { x, y }: Cell,
  cell: number,
  { filled, reward }: { filled: boolean; reward: boolean },
): string {
  const radius = cell * (reward ? 0.4 : 0.43);
  const path = Object.hasOwn(STAMP_ICON_PATHS, icon)
    ? STAMP_ICON_PATHS[icon as keyof typeof STAMP_ICON_PATHS]
    : STAMP_ICON_PATHS.star;
  const disc = `<circle cx="${x}" cy="${y}" r="${radius}" fill="${stampBackgroundColor}"`;
  const size = radius * 1.24;
  return [
    filled
      ? `${disc}/>${iconSvg(path, { x, y }, size, stampColor)}`
      : `${disc} fill-opacity=".2"/><g opacity=".6">${iconSvg(path, { x, y }, size, stampBackgroundColor)}</g>`,
    reward ? rewardMark({ x, y }, cell, { stampColor, stampBackgroundColor }) : '',
  ].join('');
}

/** A ring around the stamp, and a present at its upper right. */
function rewardMark(
  { x, y }: Cell,
  cell: number,
  { stampColor, stampBackgroundColor }: { stampColor: string; stampBackgroundColor: string },
): string {
  const badge = { x: x + cell * 0.31, y: y - cell * 0.31 };
  return [
    `<circle cx="${x}" cy="${y}" r="${cell * 0.44}" fill="none" stroke="${stampBackgroundColor}" stroke-width="${cell * 0.035}"/>`,
    `<circle cx="${badge.x}" cy="${badge.y}" r="${cell * 0.16}" fill="${stampColor}" stroke="${stampBackgroundColor}" stroke-width="${cell * 0.025}"/>`,
    iconSvg(STAMP_ICON_PATHS.gift, badge, cell * 0.2, stampBackgroundColor),
  ].join('');
}

function iconSvg(path: string, { x, y }: Cell, size: number, color: string): string {
  const scale = size / 24;
  return `<path transform="translate(${x - size / 2} ${y - size / 2}) scale(${scale})" fill="${color}" d="${path}"/>`;
}
