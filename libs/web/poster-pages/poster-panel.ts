import { computeContrast } from '#platform/kernel/contrast.js';
import { pickReadableColor } from '#web/pages/colors.js';
import { findDarkModules } from '#web/web-card/qr-modules.js';
import type { DrawnShape } from './drawing.js';
import type { Block, Column, Typesetter } from './typesetter.js';

const WHITE = '#FFFFFF';
const INK = '#111111';

/** Lengths are in units of the layout. */
export const PANEL_WIDTH = 88;
const PANEL = { above: 3.6, below: 3.2, radius: 3.5, scan: 4.4, address: 2.6 };
const OUTLINE = 0.4;
/** Below this contrast to the ground, white needs an outline. */
const MIN_CONTRAST = 1.25;

export type PanelInput = {
  /** The text of the code, and the address below it. */
  code: string;
  address: string;
  /** What to do with it. */
  scan: string;
  ground: string;
  /** Readable on the ground. */
  ink: string;
  unit: number;
  typesetter: Typesetter;
  column: Column;
};

/**
 * Lays out the QR code with its quiet zone, always on white, because scanners need it.
 * @param codeSize in units
 */
export function layOutPanel(input: PanelInput, codeSize: number): Block {
  const { unit, column, typesetter, ground } = input;
  const { path, side } = findDarkModules(input.code, 'Q');
  const width = PANEL_WIDTH * unit;
  const room = { width: PANEL_WIDTH - 8, leading: 1.25, before: 0, minSize: 1.7, maxLines: 3 };
  const line = (text: string, weight: 'regular' | 'bold', maxSize: number, color: string) =>
    typesetter.layOutLines(text, weight, {
      ...room,
      maxSize,
      height: maxSize * 1.3,
      color,
      column,
    });
  const scan = line(input.scan, 'bold', PANEL.scan, pickReadableColor(WHITE, ground));
  const address = line(input.address, 'regular', PANEL.address, INK);
  const code = codeSize * unit;
  const inside = PANEL.above * unit + scan.height;
  const left = column.centre - width / 2;
  const height = inside + code + address.height + PANEL.below * unit;
  const draw = (top: number): DrawnShape[] => [
    ...drawFrame({ x: left, y: top, width, height }, input),
    ...scan.draw(top + PANEL.above * unit),
    {
      kind: 'path',
      x: column.centre - code / 2,
      y: top + inside,
      scale: code / side,
      path,
      fill: INK,
    },
    ...address.draw(top + inside + code),
  ];
  return { before: 0, height, draw };
}

function drawFrame(
  box: { x: number; y: number; width: number; height: number },
  { unit, ground, ink }: PanelInput,
): DrawnShape[] {
  const radius = PANEL.radius * unit;
  const panel = { kind: 'rectangle', ...box, radius, fill: WHITE } as const;
  if (computeContrast(ground, WHITE) >= MIN_CONTRAST) return [panel];
  const line = OUTLINE * unit;
  return [
    {
      kind: 'rectangle',
      x: box.x - line,
      y: box.y - line,
      width: box.width + 2 * line,
      height: box.height + 2 * line,
      radius: radius + line,
      fill: ink,
    },
    panel,
  ];
}
