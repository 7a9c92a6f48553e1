import { computeContrast, mixColors } from '#platform/kernel/contrast.js';
import type { StripPreset } from './card-appearance.js';
import { STAMP_ICON_PATHS } from './stamp-icons.js';
import { STRIP } from './stamp-grid.js';

const { width: W, height: H } = STRIP;
const [WHITE, BLACK] = ['#FFFFFF', '#000000'];
/** White patterns are seen on a colour that has this contrast to white. */
const LIGHT = 2;
/** The opacity of a pattern on a colour that it was not drawn for. */
const MAX_TINTED = 0.12;

/**
 * Describes a background without a picture: a slight gradient, and a quiet pattern of one colour over it.
 * @property opacity of the pattern. It is that of all shapes together, so that shapes which overlap get no stronger.
 */
type Preset = { from: string; to: string; color: string; opacity: number; shapes: string };

const PRESETS: Record<StripPreset, Preset> = {
  coffee: {
    from: '#4A2F23',
    to: '#55372A',
    color: '#F3E3CF',
    opacity: 0.08,
    shapes: scatter(108, 84, 4.2, renderBean),
  },
  bakery: {
    from: '#EBD3AC',
    to: '#E4C797',
    color: '#8A5A22',
    opacity: 0.13,
    shapes: scatter(126, 98, 3.1, () => renderIcon('croissant')),
  },
  restaurant: {
    from: '#741A1D',
    to: '#661418',
    color: '#FFFFFF',
    opacity: 0.055,
    shapes: renderGingham(),
  },
  bar: {
    from: '#1B2142',
    to: '#231C46',
    color: '#FFD27A',
    opacity: 0.09,
    shapes: renderBubbles(),
  },
  salon: {
    from: '#ECBACA',
    to: '#E4AABF',
    color: '#FFFFFF',
    opacity: 0.26,
    shapes: renderWaves(),
  },
  barber: {
    from: '#1F2C44',
    to: '#1A2538',
    color: '#FFFFFF',
    opacity: 0.05,
    shapes: renderStripes(),
  },
  spa: {
    from: '#A9CFBE',
    to: '#98C3B1',
    color: '#1F5A4C',
    opacity: 0.11,
    shapes: scatter(126, 96, 3, () => renderIcon('leaf')),
  },
  fitness: {
    from: '#22252B',
    to: '#2A2E36',
    color: '#FFFFFF',
    opacity: 0.05,
    shapes: renderChevrons(),
  },
  pets: {
    from: '#8ABAD6',
    to: '#7BADCC',
    color: '#FFFFFF',
    opacity: 0.2,
    shapes: scatter(126, 96, 2.7, () => renderIcon('paw')),
  },
  flowers: {
    from: '#F4D2DE',
    to: '#EEC3D3',
    color: '#B85C82',
    opacity: 0.13,
    shapes: scatter(126, 96, 2.9, () => renderIcon('flower')),
  },
  retail: {
    from: '#2A656A',
    to: '#245860',
    color: '#FFFFFF',
    opacity: 0.09,
    shapes: renderDots(),
  },
  books: {
    from: '#543627',
    to: '#492E21',
    color: '#F0DDBE',
    opacity: 0.08,
    shapes: renderSpines(),
  },
};

/** Renders the SVG of a preset, which covers the strip. @param tint see `StripLayer` */
export function renderPreset(name: StripPreset, tint?: string): string {
  const { from, to, color, opacity, shapes } = tintPreset(PRESETS[name], tint);
  return [
    `<linearGradient id="preset" x1="0" y1="0" x2="1" y2="1"><stop offset="0" stop-color="${from}"/>`,
    `<stop offset="1" stop-color="${to}"/></linearGradient>`,
    `<rect width="${W}" height="${H}" fill="url(#preset)"/>`,
    `<g opacity="${opacity}" fill="${color}" stroke="none">${shapes.replaceAll('currentColor', color)}</g>`,
  ].join('');
}

/** Lists the colours between which all colours of a preset lie. */
export function listPresetColors(name: StripPreset, tint?: string): string[] {
  const { from, to, color, opacity } = tintPreset(PRESETS[name], tint);
  return [from, to].flatMap((ground) => [ground, mixColors(ground, color, opacity)]);
}

/** Gives a preset the colour of a shop, with a pattern that is quiet on any. */
function tintPreset(preset: Preset, tint: string | undefined): Preset {
  if (tint === undefined) return preset;
  const color = computeContrast(tint, WHITE) >= LIGHT ? WHITE : mixColors(tint, BLACK, 0.6);
  const opacity = Math.min(preset.opacity, MAX_TINTED);
  return { ...preset, from: tint, to: mixColors(tint, BLACK, 0.07), color, opacity };
}

/** Renders shapes of 24 by 24 in a brick pattern, each turned a little. */
function scatter(stepX: number, stepY: number, scale: number, renderShape: () => string): string {
  const rows = Math.ceil(H / stepY) + 1;
  const columns = Math.ceil(W / stepX) + 2;
  return Array.from({ length: rows }, (_, row) =>
    Array.from({ length: columns }, (_each, column) => {
      const x = Math.round((column - (row % 2) / 2) * stepX - 12 * scale);
      const y = Math.round(row * stepY - 12 * scale + 16);
      const rotation = (((row * columns + column) * 47) % 60) - 30;
      return `<g transform="translate(${x} ${y}) scale(${scale}) rotate(${rotation} 12 12)">${renderShape()}</g>`;
    }),
  )
    .flat()
    .join('');
}

function renderIcon(icon: 'croissant' | 'paw' | 'flower' | 'leaf'): string {
  return `<path d="${STAMP_ICON_PATHS[icon]}"/>`;
}

/** Renders the two halves of a coffee bean, with the fold between them. */
function renderBean(): string {
  return '<path d="M12.6 5.500C9 7.400 12.800 11.200 11.200 18.500 7.400 18.200 5 15.500 5 12s3.300-6.600 7.600-6.500z"/><path d="M14.400 5.800c2.700 1 4.600 3.300 4.600 6.200 0 3.600-2.700 6.300-6 6.500 1.700-6.700-1.500-9.800 1.400-12.700z"/>';
}

/** Renders a checked tablecloth: bands both ways, and what both cover. */
function renderGingham(): string {
  const side = 36;
  const count = Math.ceil(W / side / 2);
  const squares = Array.from({ length: count }, (_, column) => {
    const x = column * side * 2;
    const rows = Array.from({ length: Math.ceil(H / side / 2) }, (_each, row) => row * side * 2);
    return rows
      .map(
        (y) =>
          `<path d="M${x} ${y}h${side}v${side}h-${side}z"/>` +
          `<path fill-opacity=".5" d="M${x + side} ${y}h${side}v${side}h-${side}zM${x} ${y + side}h${side}v${side}h-${side}z"/>`,
      )
      .join('');
  });
  return squares.join('');
}

/** Renders bubbles that rise in a glass. Steps of the golden ratio spread them evenly. */
function renderBubbles(): string {
  const count = 70;
  return Array.from({ length: count }, (_, index) => {
    const x = Math.round(((index * 0.618034) % 1) * W);
    const y = Math.round((index / count) * H);
    const r = 7 + ((index * 29) % 16);
    return index % 3 === 0
      ? `<circle cx="${x}" cy="${y}" r="${r}"/>`
      : `<circle cx="${x}" cy="${y}" r="${r}" fill="none" stroke="currentColor" stroke-width="4"/>`;
  }).join('');
}

function renderWaves(): string {
  const half = 90;
  const lines = Array.from({ length: 13 }, (_, row) => {
    const y = 6 + row * 36;
    const start = -((row % 2) * half);
    const humps = Array.from({ length: 14 }, () => `t${half} 0`).join('');
    return `<path d="M${start} ${y}q${half / 2} -24 ${half} 0${humps}"/>`;
  });
  return `<g fill="none" stroke="currentColor" stroke-width="5">${lines.join('')}</g>`;
}

function renderStripes(): string {
  const band = 24;
  return Array.from({ length: Math.ceil((W + H) / band / 2) }, (_, index) => {
    const x = index * 2 * band - H;
    return `<path d="M${x} ${H}l${H} -${H}h${band}l-${H} ${H}z"/>`;
  }).join('');
}

function renderChevrons(): string {
  const [width, height, step] = [18, 72, 54];
  const rows = Array.from({ length: Math.ceil(H / height) }, (_, row) => row * height);
  return rows
    .flatMap((y) =>
      Array.from({ length: Math.ceil(W / step) + 1 }, (_, column) => {
        const x = column * step - 36;
        const half = height / 2;
        return `<path d="M${x} ${y}l36 ${half}l-36 ${half}h${width}l36 -${half}l-36 -${half}z"/>`;
      }),
    )
    .join('');
}

function renderDots(): string {
  const step = 36;
  return Array.from({ length: Math.ceil(H / step) + 1 }, (_, row) =>
    Array.from({ length: Math.ceil(W / step) + 1 }, (_each, column) => {
      const x = column * step + (row % 2) * (step / 2);
      return `<circle cx="${x}" cy="${row * step}" r="7"/>`;
    }),
  )
    .flat()
    .join('');
}

/** Renders books on three shelves. */
function renderSpines(): string {
  const shelf = H / 3;
  return Array.from({ length: 3 }, (_, row) => {
    let x = -((row * 17) % 30);
    const books: string[] = [];
    for (let index = row * 7; x < W; index++) {
      const width = 22 + ((index * 13) % 4) * 6;
      const height = shelf - 22 - ((index * 29) % 34);
      const y = (row + 1) * shelf - height;
      books.push(
        `<path d="M${x} ${y}h${width}v14h-${width}zM${x} ${y + 20}h${width}v${height - 20}h-${width}z"/>`,
      );
      x += width + 6;
    }
    return books.join('');
  }).join('');
}
