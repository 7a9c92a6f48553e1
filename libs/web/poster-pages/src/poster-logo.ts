import type { DrawnShape } from './drawing.js';

/** The room of the logo, in units of the layout. */
const ROOM = { width: 50, height: 11 };

/** A logo to draw, in its own proportions. */
export type PosterLogo = { png: Buffer; width: number; height: number };

/** Lays out the logo in the middle of the paper, as large as its room allows. */
export function layOutLogo(
  { png, width, height }: PosterLogo,
  { scale, unit, paperWidth }: { scale: number; unit: number; paperWidth: number },
): { before: number; height: number; draw: (top: number) => DrawnShape[] } {
  const room = { width: ROOM.width * scale * unit, height: ROOM.height * scale * unit };
  const factor = Math.min(room.width / width, room.height / height);
  const size = { width: width * factor, height: height * factor };
  const x = (paperWidth - size.width) / 2;
  return { before: 0, height: size.height, draw: (y) => [{ kind: 'picture', x, y, ...size, png }] };
}
