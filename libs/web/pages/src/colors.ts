const BLACK = '#000000';
const WHITE = '#FFFFFF';
/** WCAG 2.2, success criterion 1.4.3: for text of any size. */
const READABLE = 4.5;

/** Returns the colour if it is readable on this ground, else black or white. Both as `#RRGGBB`. */
export function pickReadableColor(ground: string, color: string): string {
  if (computeContrast(ground, color) >= READABLE) return color;
  return computeContrast(ground, BLACK) > computeContrast(ground, WHITE) ? BLACK : WHITE;
}

/** Computes the contrast ratio of WCAG, from 1 to 21. */
export function computeContrast(one: string, other: string): number {
  const [darker = 0, lighter = 0] = [computeLuminance(one), computeLuminance(other)].sort(
    (a, b) => a - b,
  );
  return (lighter + 0.05) / (darker + 0.05);
}

function computeLuminance(color: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(color.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
