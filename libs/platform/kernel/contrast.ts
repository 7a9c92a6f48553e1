/** Computes the contrast ratio of WCAG, from 1 to 21, of two colours as `#RRGGBB`. */
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

/** Mixes two colours: the upper one with this opacity, from 0 to 1, over the lower one. */
export function mixColors(lower: string, upper: string, opacity: number): string {
  const parts = [1, 3, 5].map((at) => {
    const [below = 0, above = 0] = [lower, upper].map((color) =>
      Number.parseInt(color.slice(at, at + 2), 16),
    );
    return Math.round(above * opacity + below * (1 - opacity))
      .toString(16)
      .padStart(2, '0');
  });
  return `#${parts.join('').toUpperCase()}`;
}
