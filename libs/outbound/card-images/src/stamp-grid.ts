/** Width and height of a strip in the units of the drawing: those of the largest image, @3x. */
export const STRIP = { width: 1125, height: 432 };

/** Older phones show a flatter strip and cut its upper and lower edges (375 x 123 of 375 x 144 points). */
const ROOM = { width: 0.94 * STRIP.width, height: 0.86 * STRIP.height };
const LARGEST_CELL = 230;
const MOST_ROWS = 3;

export type Cell = { x: number; y: number };

export type Grid = {
  /** Side of the square around each stamp. */
  cell: number;
  /** Centres, in the order in which they are filled. */
  centres: Cell[];
};

/**
 * The arrangement that gives stamps the most room. Rows differ by one stamp at most, and each is centred.
 * @param stamps 1 to 21
 */
export function gridOf(stamps: number): Grid {
  const sizes = Array.from({ length: MOST_ROWS }, (_, index) => {
    const rows = index + 1;
    return { rows, cell: Math.min(ROOM.width / Math.ceil(stamps / rows), ROOM.height / rows) };
  });
  const best = sizes.reduce((a, b) => (b.cell > a.cell ? b : a));
  const cell = Math.min(best.cell, LARGEST_CELL);
  return { cell, centres: centresOf(stamps, best.rows, cell) };
}

function centresOf(stamps: number, rows: number, cell: number): Cell[] {
  const top = (STRIP.height - rows * cell) / 2;
  return Array.from({ length: rows }, (_, row) => {
    const inRow = Math.floor(stamps / rows) + (row < stamps % rows ? 1 : 0);
    const left = (STRIP.width - inRow * cell) / 2;
    return Array.from({ length: inRow }, (_each, column) => ({
      x: left + (column + 0.5) * cell,
      y: top + (row + 0.5) * cell,
    }));
  }).flat();
}
