import { describe, expect, it } from '@jest/globals';
import sharp from 'sharp';
import { sample } from '../../../test/support/jest/sample.js';
import { computeContrast } from '#platform/kernel/contrast.js';
import { STRIP_PRESETS } from '#loyalty/cards/card-appearance.js';
import { arrangeStamps } from '#loyalty/cards/stamp-grid.js';
import type { StripLayer } from '#loyalty/cards/stamp-colors.js';
import { STRIP_SIZES, type StripDesign } from './strip-design.js';
import { listPresetColors } from '#loyalty/cards/strip-presets.js';
import { renderIcon, renderStrip } from './strip-svg.js';

const SIZE = STRIP_SIZES['3x'];
const STAMPS = 10;
const FILLED = 4;
/** WCAG 2.2, success criterion 1.4.11, and what eight bits a channel may take from it. */
const VISIBLE = 2.95;
const DISTINCT = 1.45;

/** The colours of stamps, of what lies behind them, and of cards. Samples begin with the hardest of each three. */
const PALETTES: [string, string, string][] = [
  ['#000000', '#000000', '#000000'],
  ['#6B4226', '#FFFFFF', '#6B4226'],
  ['#FFFFFF', '#C8102E', '#FFFFFF'],
  ['#808080', '#7A7A7A', '#808080'],
  ['#1F4E5F', '#F2C300', '#1F4E5F'],
  ['#FFFFFF', '#FFA726', '#FFF3E0'],
];

const TINTS = ['#FFFFFF', '#3E7A2E', '#F2C300', '#808080', '#FFB0B0', '#000000'];

/** Reads the colour at a point. */
type ReadColor = (x: number, y: number) => string;

function createDesign(layer: StripLayer, palette: string[], opacity: number): StripDesign {
  const [stampColor = '', stampBackgroundColor = '', cardColor = ''] = palette;
  // Its middle is filled.
  const icon = 'heart';
  const colors = { stampColor, stampBackgroundColor, cardColor };
  return { drawing: 0, stamps: STAMPS, rewards: [], icon, ...colors, layer, opacity };
}

async function readColors(svg: string): Promise<ReadColor> {
  const { data, info } = await sharp(Buffer.from(svg)).raw().toBuffer({ resolveWithObject: true });
  return (x, y) => {
    const at = (Math.round(y) * info.width + Math.round(x)) * info.channels;
    return `#${data.subarray(at, at + 3).toString('hex')}`;
  };
}

const draw = (layer: StripLayer, palette: string[], opacity: number) =>
  readColors(renderStrip(createDesign(layer, palette, opacity), FILLED, SIZE));

/** Reads colours on a circle around the middle of a stamp, in 24 directions. @param radius a share of the cell */
function readCircle(read: ReadColor, index: number, radius: number): string[] {
  const { cellSize, centres } = arrangeStamps(STAMPS);
  const { x = 0, y = 0 } = centres[index] ?? {};
  return Array.from({ length: 24 }, (_, step) => {
    const angle = (step / 12) * Math.PI;
    return read(x + Math.cos(angle) * radius * cellSize, y + Math.sin(angle) * radius * cellSize);
  });
}

/** Finds the lowest contrast between neighbouring colours of two circles. */
function findContrast(colors: string[], others: string[]): number {
  return Math.min(...colors.map((color, i) => computeContrast(color, others[i] ?? color)));
}

/** Measures a strip as it is seen: the shape of stamps against their surroundings, and icons against their stamps. */
function measure(read: ReadColor) {
  const filled = 0;
  const empty = STAMPS - 1;
  const circle = (stamp: number, radius: number) => readCircle(read, stamp, radius);
  return {
    filledShape: findContrast(circle(filled, 0.418), circle(filled, 0.45)),
    filledIcon: findContrast(circle(filled, 0), circle(filled, 0.37)),
    emptyShape: findContrast(circle(empty, 0.413), circle(empty, 0.45)),
    emptyRing: findContrast(circle(empty, 0.413), circle(empty, 0.37)),
    emptyIcon: findContrast(circle(empty, 0), circle(empty, 0.37)),
    fillings: findContrast(circle(filled, 0.37), circle(empty, 0.37)),
  };
}

const expectVisible = (read: ReadColor): void => {
  const { filledShape, filledIcon, emptyShape, emptyRing, emptyIcon, fillings } = measure(read);
  for (const shape of [filledShape, emptyShape, emptyRing, emptyIcon]) {
    expect(shape).toBeGreaterThanOrEqual(VISIBLE);
  }
  expect(filledIcon).toBeGreaterThanOrEqual(DISTINCT);
  expect(fillings).toBeGreaterThanOrEqual(DISTINCT - 0.25);
};

describe.each(STRIP_PRESETS)('the preset %s', (preset) => {
  it('is a quiet pattern', () => {
    for (const tint of [undefined, ...TINTS]) {
      const colors = listPresetColors(preset, tint);
      const contrasts = colors.flatMap((one) => colors.map((other) => computeContrast(one, other)));
      expect([tint, Math.max(...contrasts) < 1.5]).toEqual([tint, true]);
    }
  });

  it('lies behind filled and empty stamps that are seen in any colours', async () => {
    const own = listPresetColors(preset)[0] ?? '';
    for (const palette of sample([...PALETTES, ['#FFFFFF', own, '#FFFFFF']], 3)) {
      expectVisible(await draw({ preset }, palette, 100));
    }
    expectVisible(await draw({ preset }, ['#6B4226', '#FFFFFF', '#6B4226'], 50));
  });

  it('lies behind stamps that are seen when a shop tints it', async () => {
    for (const [index, tint] of sample([...TINTS.entries()], 3)) {
      expectVisible(await draw({ preset, tint }, PALETTES[index] ?? [], 100));
    }
  });
});

it('stamps are seen on a strip of any colour', async () => {
  for (const color of ['#000000', '#6B4226', '#808080', '#F2C300', '#FFFFFF']) {
    for (const palette of PALETTES) expectVisible(await draw({ color }, palette, 100));
  }
});

it('the icon of a card is seen in any colours', async () => {
  for (const palette of PALETTES) {
    const design = createDesign({ color: '#777777' }, palette, 100);
    const read = await readColors(renderIcon(design, 'program', 100));
    const [icon, disc, ground] = [read(50, 50), read(50, 20), read(2, 2)];
    expect(computeContrast(icon, disc)).toBeGreaterThanOrEqual(DISTINCT);
    expect(computeContrast(disc, ground)).toBeGreaterThanOrEqual(DISTINCT);
  }
});
