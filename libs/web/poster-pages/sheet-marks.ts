import type { DrawnShape } from './drawing.js';
import { BLEED, MARKS } from './paper.js';

/** The marks at which a sheet is folded, in points. */
const FOLD = { length: 12, width: 0.4 };

type Sheet = { width: number; height: number };

/** Moves a shape down. */
export function moveDown(shape: DrawnShape, by: number): DrawnShape {
  return shape.kind === 'turned'
    ? { ...shape, shapes: shape.shapes.map((part) => moveDown(part, -by)) }
    : { ...shape, y: shape.y + by };
}

/** Draws where a sheet is folded, at both edges. */
export function drawFoldMarks({ width, height }: Sheet, fill: string): DrawnShape[] {
  return [0, width - FOLD.length].map((x) => ({
    kind: 'rectangle',
    x,
    y: (height - FOLD.width) / 2,
    width: FOLD.length,
    height: FOLD.width,
    radius: 0,
    fill,
  }));
}

/** Draws the crop marks, outside of the bleed. */
export function drawCropMarks({ width, height }: Sheet): DrawnShape[] {
  const thick = 0.3;
  const long = MARKS - 2;
  return [-BLEED - long - 1, 0].flatMap((away) => {
    const across = away < 0 ? away : width + BLEED + 1;
    const down = away < 0 ? away : height + BLEED + 1;
    return [
      ...[0, height].map((y) => ({ x: across, y: y - thick / 2, width: long, height: thick })),
      ...[0, width].map((x) => ({ x: x - thick / 2, y: down, width: thick, height: long })),
    ].map((box) => ({ kind: 'rectangle', ...box, radius: 0, fill: '#000000' }) as const);
  });
}
