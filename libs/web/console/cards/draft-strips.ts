import { isStampIcon, isStripPreset } from '#loyalty/cards/card-appearance.js';
import type { StripLayer } from '#loyalty/cards/stamp-colors.js';
import {
  STRIP_SIZES,
  type StripDesign,
  type StripSize,
} from '#outbound/card-images/strip-design.js';

/** The number of values in an address. */
const PARTS = 11;
const DIGITS = /^[0-9A-F]{6}$/;
const OPACITY = /^\d{1,3}(\.\d{1,20})?$/;
const PICTURE = /^[0-9a-f]{64}$/;
const MAX_STAMPS = 21;

/** An image of a card that is not saved: its address carries all that it shows. */
export type DraftStrip = { design: StripDesign; filled: number; size: StripSize };

/** Renders the address of an image after its path: short, because a page has several. */
export function renderStripQuery({ design, filled, size }: DraftStrip): string {
  const { layer } = design;
  const parts = [
    design.drawing,
    design.stamps,
    design.rewards.join('-'),
    design.icon,
    ...[design.stampColor, design.stampBackgroundColor, design.cardColor].map(withoutHash),
    'color' in layer
      ? `c-${withoutHash(layer.color)}`
      : 'preset' in layer
        ? `p-${layer.preset}${layer.tint === undefined ? '' : `-${withoutHash(layer.tint)}`}`
        : `i-${layer.picture ?? ''}`,
    design.opacity,
    filled,
    size,
  ];
  return `design=${parts.join('~')}`;
}

/** Parses such a query. @returns undefined for anything that `renderStripQuery` does not render */
export function parseStripQuery({ design: text }: Record<string, unknown>): DraftStrip | undefined {
  const parts = typeof text === 'string' ? text.split('~') : [];
  if (parts.length !== PARTS) return undefined;
  const [drawing = '', stamps = '', points = '', icon = '', ...rest] = parts;
  const [stamp = '', ground = '', card = '', layerText = '', opacity = '', filled = '', size = ''] =
    rest;
  const rewards = points === '' ? [] : points.split('-').map(parseCount);
  const counts = [parseCount(drawing), parseCount(stamps), parseCount(filled)] as const;
  const [version, total, filledCount] = counts;
  const layer = parseLayer(layerText);
  if (version === undefined || total === undefined || filledCount === undefined) return undefined;
  if (total < 1 || total > MAX_STAMPS || filledCount > total || !isStripSize(size) || !layer) {
    return undefined;
  }
  const validRewards = rewards.filter((reward) => reward !== undefined);
  if (validRewards.length !== rewards.length || rewards.length > MAX_STAMPS) return undefined;
  if (!OPACITY.test(opacity) || Number(opacity) > 100 || !isStampIcon(icon)) return undefined;
  if (![stamp, ground, card].every((color) => DIGITS.test(color))) return undefined;
  return {
    design: {
      drawing: version,
      stamps: total,
      rewards: validRewards,
      icon,
      stampColor: `#${stamp}`,
      stampBackgroundColor: `#${ground}`,
      cardColor: `#${card}`,
      layer,
      opacity: Number(opacity),
    },
    filled: filledCount,
    size,
  };
}

function parseLayer(text: string): StripLayer | undefined {
  const value = text.slice(2);
  if (text.startsWith('c-') && DIGITS.test(value)) return { color: `#${value}` };
  if (text.startsWith('p-')) {
    const [preset = '', tint] = value.split('-');
    if (!isStripPreset(preset)) return undefined;
    if (tint === undefined) return { preset };
    return DIGITS.test(tint) ? { preset, tint: `#${tint}` } : undefined;
  }
  if (text === 'i-') return { picture: null };
  return text.startsWith('i-') && PICTURE.test(value) ? { picture: value } : undefined;
}

function withoutHash(color: string): string {
  return color.slice(1);
}

function parseCount(text: string): number | undefined {
  return /^\d{1,3}$/.test(text) ? Number(text) : undefined;
}

function isStripSize(size: string): size is StripSize {
  return Object.hasOwn(STRIP_SIZES, size);
}
