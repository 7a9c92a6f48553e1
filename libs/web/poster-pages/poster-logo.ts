import type { Block, Column } from './typesetter.js';

/** The room of the logo, in units of the layout. A narrow column is all that it may take. */
const ROOM = { width: 50, height: 11 };
/** The space below it. */
const GAP = 1.4;

/** A logo to draw, in its own proportions. */
export type PosterLogo = { png: Buffer; width: number; height: number };

/** Lays out the logo in the middle of its column, as large as its room allows. */
export function layOutLogo(
  { png, width, height }: PosterLogo,
  { scale, unit, column }: { scale: number; unit: number; column: Column },
): Block {
  const room = {
    width: Math.min(ROOM.width * scale, column.width) * unit,
    height: ROOM.height * scale * unit,
  };
  const factor = Math.min(room.width / width, room.height / height);
  const size = { width: width * factor, height: height * factor };
  const x = column.centre - size.width / 2;
  return {
    before: 0,
    height: size.height + GAP * scale * unit,
    draw: (y) => [{ kind: 'picture', x, y, ...size, png }],
  };
}
