import { computeContrast } from '#platform/kernel/contrast.js';
import { isStampIcon } from '#loyalty/cards/card-appearance.js';
import { STAMP_ICON_PATHS } from '#loyalty/cards/stamp-icons.js';
import { pickReadableColor } from '#web/pages/colors.js';
import type { DrawnShape } from './drawing.js';

/** The minimum contrast of shapes (WCAG 2.2, success criterion 1.4.11). */
const VISIBLE = 3;

/** Draws a stamp that is seen on any ground. The ink is readable on the ground. */
export function drawStamp(
  { x, y }: { x: number; y: number },
  cell: number,
  icon: string,
  { ground, fill, ink }: { ground: string; fill: string; ink: string },
): DrawnShape[] {
  const mark = computeContrast(fill, ground) >= VISIBLE ? ground : pickReadableColor(fill, ink);
  const radius = cell * 0.44;
  const size = radius * 1.24;
  return [
    // Outlines a stamp that has the colour of the ground.
    ...(computeContrast(fill, ground) < VISIBLE / 2
      ? [{ kind: 'disc', x, y, radius: radius * 1.04, fill: ink } as const]
      : []),
    { kind: 'disc', x, y, radius: radius * 0.97, fill },
    {
      kind: 'path',
      x: x - size / 2,
      y: y - size / 2,
      scale: size / 24,
      path: isStampIcon(icon) ? STAMP_ICON_PATHS[icon] : STAMP_ICON_PATHS.star,
      fill: mark,
    },
  ];
}
