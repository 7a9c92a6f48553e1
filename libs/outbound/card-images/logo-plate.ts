import { computeContrast } from '#platform/kernel/contrast.js';

/** Pixels as sharp gives them: red, green, blue and alpha, each from 0 to 255, row by row. */
export type RgbaPixels = { data: Uint8Array; width: number; height: number };

/**
 * What a logo is drawn on.
 * @property ground of a square: `#RRGGBB`
 * @property isNeeded whether a wide logo needs it too, because it could not be seen without
 */
export type LogoPlate = { ground: string; isNeeded: boolean };

const WHITE = '#FFFFFF';
const BLACK = '#1B1B1B';
/** The minimum contrast of shapes (WCAG 2.2, success criterion 1.4.11). */
const VISIBLE = 3;
/** Softer than this is no part of the logo. */
const MIN_ALPHA = 96;
/** The share of a logo that has to be visible. The rest may be an outline or a shadow. */
const MIN_VISIBLE_SHARE = 0.6;

/**
 * Chooses what a logo is drawn on. One with transparent parts stands on the ground of its place, or on white or black if
 * most of it could not be seen there. One without brings its own ground, which continues around it.
 */
export function choosePlate(pixels: RgbaPixels, ground: string): LogoPlate {
  if (isOpaque(pixels)) return { ground: findEdgeColor(pixels), isNeeded: false };
  const colors = [...countColors(pixels)];
  const total = colors.reduce((sum, [, count]) => sum + count, 0);
  const share = (background: string) => {
    const visible = colors.filter(([color]) => computeContrast(color, background) >= VISIBLE);
    return total === 0 ? 1 : visible.reduce((sum, [, count]) => sum + count, 0) / total;
  };
  if (share(ground) >= MIN_VISIBLE_SHARE) return { ground, isNeeded: false };
  const best = share(WHITE) >= share(BLACK) ? WHITE : BLACK;
  return share(best) > share(ground)
    ? { ground: best, isNeeded: true }
    : { ground, isNeeded: false };
}

/** Tells whether the corners and the middles of all sides are opaque: it is a rectangle. */
function isOpaque({ data, width, height }: RgbaPixels): boolean {
  const [right, bottom] = [width - 1, height - 1];
  const [middle, half] = [right >> 1, bottom >> 1];
  const places = [
    [0, 0],
    [right, 0],
    [0, bottom],
    [right, bottom],
    [middle, 0],
    [middle, bottom],
    [0, half],
    [right, half],
  ] as const;
  return places.every(([x, y]) => (data[(y * width + x) * 4 + 3] ?? 0) > 250);
}

/** Averages the corners: of most logos without transparent parts they are white. */
function findEdgeColor({ data, width, height }: RgbaPixels): string {
  const corners = [0, width - 1, (height - 1) * width, height * width - 1];
  const parts = [0, 1, 2].map((channel) => {
    const sum = corners.reduce((total, at) => total + (data[at * 4 + channel] ?? 0), 0);
    return Math.round(sum / corners.length);
  });
  return toHex(parts);
}

/** Counts the colours of what can be seen. Similar ones count as one, since thousands of pixels hold few colours. */
export function countColors({ data }: RgbaPixels): Map<string, number> {
  const counts = new Map<string, number>();
  for (let at = 0; at < data.length; at += 4) {
    const [red = 0, green = 0, blue = 0, alpha = 0] = data.subarray(at, at + 4);
    if (alpha < MIN_ALPHA) continue;
    const color = toHex([red, green, blue].map((part) => Math.min(255, (part >> 3) * 8 + 4)));
    counts.set(color, (counts.get(color) ?? 0) + 1);
  }
  return counts;
}

function toHex(parts: number[]): string {
  return `#${parts.map((part) => part.toString(16).padStart(2, '0')).join('')}`.toUpperCase();
}
