import type { Weight } from '#loyalty/posters/shaped-font.js';
import type { Drawing, DrawnShape } from './drawing.js';

/** Converts a text to a path. */
export type Outline = (
  text: string,
  weight: Weight,
  at: { x: number; y: number; size: number },
) => string;

/**
 * Renders a drawing as SVG. Letters are paths, so that it looks the same everywhere and contains no user input.
 * @param resolution pixels per point; without it, the SVG scales to its container
 */
export function renderPosterSvg(drawing: Drawing, outline: Outline, resolution?: number): string {
  const { margin } = drawing;
  const full = { width: drawing.width + 2 * margin, height: drawing.height + 2 * margin };
  const size =
    resolution === undefined
      ? ''
      : // Both sides are rounded on their own, and no edge may stay empty.
        ` preserveAspectRatio="none" width="${Math.round(full.width * resolution)}" height="${Math.round(full.height * resolution)}"`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg"${size} viewBox="${-margin} ${-margin} ${full.width} ${full.height}">`,
    margin > 0
      ? `<rect x="${-margin}" y="${-margin}" width="${full.width}" height="${full.height}" fill="#fff"/>`
      : '',
    ...drawing.shapes.map((shape) => renderShape(shape, outline, drawing)),
    '</svg>',
  ].join('');
}

function renderShape(
  shape: DrawnShape,
  outline: Outline,
  paper: Pick<Drawing, 'width' | 'height'>,
): string {
  if (shape.kind === 'turned') {
    const inner = shape.shapes.map((part) => renderShape(part, outline, paper)).join('');
    const centre = `${formatLength(paper.width / 2)} ${formatLength(paper.height / 2)}`;
    return `<g transform="rotate(180 ${centre})">${inner}</g>`;
  }
  if (shape.kind === 'picture') return renderPicture(shape);
  const { fill } = shape;
  switch (shape.kind) {
    case 'rectangle': {
      const { x, y, width, height, radius } = shape;
      return `<rect x="${formatLength(x)}" y="${formatLength(y)}" width="${formatLength(width)}" height="${formatLength(height)}" rx="${formatLength(radius)}" fill="${fill}"/>`;
    }
    case 'disc':
      return `<circle cx="${formatLength(shape.x)}" cy="${formatLength(shape.y)}" r="${formatLength(shape.radius)}" fill="${fill}"/>`;
    case 'path': {
      const { x, y, scale, path } = shape;
      return `<path transform="translate(${formatLength(x)} ${formatLength(y)}) scale(${scale.toFixed(6)})" fill="${fill}" d="${path}"/>`;
    }
    case 'text':
      return `<path fill="${fill}" d="${outline(shape.text, shape.weight, shape)}"/>`;
  }
}

function renderPicture({
  x,
  y,
  width,
  height,
  png,
}: Extract<DrawnShape, { kind: 'picture' }>): string {
  const href = `data:image/png;base64,${png.toString('base64')}`;
  return `<image x="${formatLength(x)}" y="${formatLength(y)}" width="${formatLength(width)}" height="${formatLength(height)}" href="${href}"/>`;
}

function formatLength(length: number): string {
  return String(Number(length.toFixed(3)));
}
