/** The size of a strip in the units of the drawing: pixels of the largest image, @3x. */
export const STRIP = { width: 1125, height: 432 };

/** Older phones show a flatter strip and crop its upper and lower edges (375 x 123 of 375 x 144 points). */
const VISIBLE_AREA = { width: 0.94 * STRIP.width, height: 0.86 * STRIP.height };
const MAX_CELL_SIZE = 230;
const MAX_ROWS = 3;

export type Point = { x: number; y: number };

export type Grid = {
  /** Side of the square around each stamp. */
  cellSize: number;
  /** Centres, in the order in which they are filled. */
  centres: Point[];
};

/**
 * Arranges stamps as large as possible. Rows differ by one stamp at most, and each is centred.
 * @param stamps 1 to 21
 */
export function arrangeStamps(stamps: number): Grid {
  const sizes = Array.from({ length: MAX_ROWS }, (_, index) => {
    const rows = index + 1;
    return {
      rows,
      cell: Math.min(VISIBLE_AREA.width / Math.ceil(stamps / rows), VISIBLE_AREA.height / rows),
    };
  });
  const best = sizes.reduce((a, b) => (b.cell > a.cell ? b : a));
  const cellSize = Math.min(best.cell, MAX_CELL_SIZE);
  return { cellSize, centres: placeCentres(stamps, best.rows, cellSize) };
}

function placeCentres(stamps: number, rows: number, cellSize: number): Point[] {
  const top = (STRIP.height - rows * cellSize) / 2;
  return Array.from({ length: rows }, (_, row) => {
    const rowLength = Math.floor(stamps / rows) + (row < stamps % rows ? 1 : 0);
    const left = (STRIP.width - rowLength * cellSize) / 2;
    return Array.from({ length: rowLength }, (_each, column) => ({
      x: left + (column + 0.5) * cellSize,
      y: top + (row + 0.5) * cellSize,
    }));
  }).flat();
}
