import { isStampIcon, isStripPreset } from '#loyalty/cards/card-appearance.js';
import { arrangeStamps, STRIP, type Point } from '#loyalty/cards/stamp-grid.js';
import { STAMP_ICON_PATHS } from '#loyalty/cards/stamp-icons.js';
import { chooseStampColors, type StampColors } from '#loyalty/cards/stamp-colors.js';
import type { IconSize, StripDesign } from './strip-design.js';
import { renderPreset } from '#loyalty/cards/strip-presets.js';

type Size = { width: number; height: number };

/** Google crops the programme logo to a circle and requires this margin on each side. */
const LOGO_MARGIN = 0.15;
const ICON_MARGIN = 0.08;
/** Shares of a stamp's cell: the outline of an empty stamp, and of a filled one that would not stand out without it. */
const RING_WIDTH = 0.034;
const EDGE_WIDTH = 0.022;

/**
 * Renders a strip. It contains no user input that needs escaping: colours and names were validated, the rest is
 * numbers.
 * @param filled 0 to `design.stamps`
 * @param picture the layer's picture in exactly this size, as a data URI
 */
export function renderStrip(
  design: StripDesign,
  filled: number,
  size: Size,
  picture?: string,
): string {
  const { layer } = design;
  const isAboveAnother = 'picture' in layer && layer.picture === null;
  const ground = [
    `<rect width="${size.width}" height="${size.height}" fill="${design.cardColor}"/>`,
    `<g opacity="${design.opacity / 100}">`,
  ];
  return [
    renderSvgStart(size),
    ...(isAboveAnother ? [] : [...ground, renderLayer(design, size, picture), '</g>']),
    // Stamps must all be visible, so they are fitted into the image instead of covering it.
    `<g transform="${fitDrawing(size, Math.min)}">${renderStamps(design, filled)}</g>`,
    '</svg>',
  ].join('');
}

/**
 * Renders a filled stamp on the card's colour. A logo has no background, because the pass is its background.
 * @param side in pixels
 */
export function renderIcon(design: StripDesign, name: IconSize, side: number): string {
  const { icon, cardColor } = design;
  const colors = chooseStampColors({ ...design, layer: { color: cardColor }, opacity: 100 }).filled;
  const centre = { x: side / 2, y: side / 2 };
  const isLogo = name.startsWith('logo');
  const margin = isLogo ? 0 : name === 'program' ? LOGO_MARGIN : ICON_MARGIN;
  const radius = (side / 2) * (1 - 2 * margin);
  return [
    renderSvgStart({ width: side, height: side }),
    isLogo ? '' : `<rect width="${side}" height="${side}" fill="${cardColor}"/>`,
    `<circle cx="${centre.x}" cy="${centre.y}" r="${radius}" fill="${colors.disc}"/>`,
    renderGlyph(getIconPath(icon), centre, radius * 1.24, colors.icon),
    '</svg>',
  ].join('');
}

function renderSvgStart({ width, height }: Size): string {
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}">`;
}

function renderLayer({ layer }: StripDesign, size: Size, picture: string | undefined): string {
  const { width, height } = size;
  if ('color' in layer) return `<rect width="${width}" height="${height}" fill="${layer.color}"/>`;
  if ('preset' in layer) {
    if (!isStripPreset(layer.preset)) throw new Error(`nothing draws the preset ${layer.preset}`);
    // It covers an image of other proportions, like a phone that fills the area of the strip.
    return `<g transform="${fitDrawing(size, Math.max)}">${renderPreset(layer.preset, layer.tint)}</g>`;
  }
  if (picture === undefined) throw new Error('the picture of the design is needed to draw it');
  return `<image width="${width}" height="${height}" href="${picture}"/>`;
}

/** Transforms the drawing into the image. @param chooseScale `Math.min` fits it, `Math.max` covers the image */
function fitDrawing({ width, height }: Size, chooseScale: (...scales: number[]) => number): string {
  const scale = chooseScale(width / STRIP.width, height / STRIP.height);
  const x = (width - STRIP.width * scale) / 2;
  const y = (height - STRIP.height * scale) / 2;
  return `translate(${x} ${y}) scale(${scale})`;
}

function renderStamps(design: StripDesign, filled: number): string {
  const { cellSize, centres } = arrangeStamps(design.stamps);
  const rewards = new Set(design.rewards);
  const colors = chooseStampColors(design);
  const icon = getIconPath(design.icon);
  return centres
    .map((centre, index) => {
      const isReward = rewards.has(index + 1);
      const radius = cellSize * (isReward ? 0.4 : 0.43);
      return [
        index < filled
          ? renderFilledStamp(colors.filled, icon, centre, { cell: cellSize, radius })
          : renderEmptyStamp(colors.empty, icon, centre, { cell: cellSize, radius }),
        isReward ? renderRewardMark(centre, cellSize, colors) : '',
      ].join('');
    })
    .join('');
}

type StampSize = { cell: number; radius: number };

function renderFilledStamp(
  { disc, icon, edge }: StampColors['filled'],
  path: string,
  { x, y }: Point,
  { cell, radius }: StampSize,
): string {
  const width = cell * EDGE_WIDTH;
  const outline = edge === null ? '' : ` stroke="${edge}" stroke-width="${width}"`;
  const r = edge === null ? radius : radius - width / 2;
  return `<circle cx="${x}" cy="${y}" r="${r}" fill="${disc}"${outline}/>${renderGlyph(path, { x, y }, radius * 1.24, icon)}`;
}

function renderEmptyStamp(
  { ink, iconOpacity, plate, plateOpacity }: StampColors['empty'],
  path: string,
  { x, y }: Point,
  { cell, radius }: StampSize,
): string {
  const width = cell * RING_WIDTH;
  return [
    `<circle cx="${x}" cy="${y}" r="${radius}" fill="${plate}" fill-opacity="${plateOpacity}"/>`,
    `<circle cx="${x}" cy="${y}" r="${radius - width / 2}" fill="none" stroke="${ink}" stroke-width="${width}"/>`,
    `<g opacity="${iconOpacity}">${renderGlyph(path, { x, y }, radius * 1.16, ink)}</g>`,
  ].join('');
}

/** Renders a ring around the stamp, and a gift at its upper right. */
function renderRewardMark(
  { x, y }: Point,
  cell: number,
  { filled: { disc, icon }, empty: { ink } }: StampColors,
): string {
  const badge = { x: x + cell * 0.31, y: y - cell * 0.31 };
  return [
    `<circle cx="${x}" cy="${y}" r="${cell * 0.455}" fill="none" stroke="${ink}" stroke-width="${cell * 0.025}"/>`,
    `<circle cx="${badge.x}" cy="${badge.y}" r="${cell * 0.16}" fill="${icon}" stroke="${disc}" stroke-width="${cell * 0.03}"/>`,
    renderGlyph(STAMP_ICON_PATHS.gift, badge, cell * 0.2, disc),
  ].join('');
}

function renderGlyph(path: string, { x, y }: Point, size: number, color: string): string {
  const scale = size / 24;
  return `<path transform="translate(${x - size / 2} ${y - size / 2}) scale(${scale})" fill="${color}" d="${path}"/>`;
}

function getIconPath(icon: string): string {
  if (!isStampIcon(icon)) throw new Error(`nothing draws the icon ${icon}`);
  return STAMP_ICON_PATHS[icon];
}
