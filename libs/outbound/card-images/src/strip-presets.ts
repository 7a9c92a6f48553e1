import type { StripPreset } from '#cards/card-appearance.js';
import { STAMP_ICON_PATHS } from './stamp-icons.js';
import { STRIP } from './stamp-grid.js';

const { width: W, height: H } = STRIP;

/** Backgrounds without a picture: a gradient between two colours, and a motif over it. */
const PRESETS: Record<StripPreset, { from: string; to: string; motif: string }> = {
  coffee: { from: '#4B2E20', to: '#7A4F36', motif: renderRings('#F3E3CF') },
  bakery: { from: '#E9C893', to: '#C98B4B', motif: renderScatteredIcons('bread', '#FFF6E4') },
  restaurant: { from: '#8C1C1C', to: '#5A0F14', motif: renderChecks('#FFFFFF') },
  bar: { from: '#141B3A', to: '#3B1D4F', motif: renderLights('#FFD27A') },
  salon: { from: '#F3B7C6', to: '#C97BA0', motif: renderWaves('#FFFFFF') },
  barber: { from: '#22304A', to: '#16202F', motif: renderStripes('#C8102E', '#FFFFFF') },
  spa: { from: '#9CC8B4', to: '#4F8F83', motif: renderWaves('#E9FFF6') },
  fitness: { from: '#1D1F24', to: '#3C434E', motif: renderChevrons('#F2C300') },
  pets: { from: '#7FB5D6', to: '#4A7FA5', motif: renderScatteredIcons('paw', '#FFFFFF') },
  flowers: { from: '#F6D5E0', to: '#E39AB5', motif: renderScatteredIcons('flower', '#FFFFFF') },
  retail: { from: '#2F6F73', to: '#1E4A57', motif: renderDots('#FFFFFF') },
  books: { from: '#5B3A29', to: '#3A251C', motif: renderSpines() },
};

/** Renders the SVG of a preset, which covers the strip. */
export function renderPreset(name: StripPreset): string {
  const { from, to, motif } = PRESETS[name];
  return [
    `<linearGradient id="preset" x1="0" y1="0" x2="1" y2="1"><stop offset="0" stop-color="${from}"/>`,
    `<stop offset="1" stop-color="${to}"/></linearGradient>`,
    `<rect width="${W}" height="${H}" fill="url(#preset)"/>${motif}`,
  ].join('');
}

function renderRings(color: string): string {
  const cups = [
    [130, 96, 92],
    [415, 372, 118],
    [690, 60, 78],
    [985, 300, 132],
  ] as const;
  return cups
    .map(
      ([x, y, r]) =>
        `<g fill="none" stroke="${color}"><circle cx="${x}" cy="${y}" r="${r}" stroke-width="13" stroke-opacity=".13"/>` +
        `<circle cx="${x + 5}" cy="${y + 3}" r="${r - 12}" stroke-width="4" stroke-opacity=".16"/></g>`,
    )
    .join('');
}

/** Renders icons in a brick pattern with varying rotation. */
function renderScatteredIcons(icon: 'bread' | 'paw' | 'flower', color: string): string {
  const path = STAMP_ICON_PATHS[icon];
  const step = 150;
  const shapes = Array.from({ length: 4 }, (_, row) =>
    Array.from({ length: 9 }, (_each, column) => {
      const x = column * step - (row % 2) * (step / 2);
      const y = row * 118 + 4;
      const rotation = (((row * 9 + column) * 47) % 70) - 35;
      return `<path transform="translate(${x} ${y}) rotate(${rotation} 36 36) scale(3)" d="${path}"/>`;
    }),
  );
  return `<g fill="${color}" fill-opacity=".2">${shapes.flat().join('')}</g>`;
}

function renderChecks(color: string): string {
  const side = 54;
  const squares = [0, 1].flatMap((row) =>
    Array.from({ length: 22 }, (_, column) => column)
      .filter((column) => (column + row) % 2 === 0)
      .flatMap((column) =>
        [row * side, H - (2 - row) * side].map(
          (y) => `<rect x="${column * side}" y="${y}" width="${side}" height="${side}"/>`,
        ),
      ),
  );
  return `<g fill="${color}" fill-opacity=".12">${squares.join('')}</g>`;
}

function renderLights(color: string): string {
  const circles = Array.from({ length: 30 }, (_, index) => {
    const x = ((index * 397) % (W + 80)) - 40;
    const y = ((index * 151) % (H + 60)) - 30;
    const r = 14 + ((index * 29) % 46);
    return `<circle cx="${x}" cy="${y}" r="${r}" fill-opacity="${(0.05 + (index % 5) * 0.025).toFixed(3)}"/>`;
  });
  return `<g fill="${color}">${circles.join('')}</g>`;
}

function renderWaves(color: string): string {
  const half = 140;
  const lines = Array.from({ length: 7 }, (_, row) => {
    const y = 30 + row * 64;
    const start = -((row % 2) * half);
    const humps = Array.from({ length: 10 }, () => `t${half} 0`).join('');
    return `<path d="M${start} ${y}q${half / 2} -46 ${half} 0${humps}"/>`;
  });
  return `<g fill="none" stroke="${color}" stroke-width="9" stroke-opacity=".24">${lines.join('')}</g>`;
}

function renderStripes(first: string, second: string): string {
  const band = 46;
  const bands = Array.from({ length: 20 }, (_, index) => {
    const x = index * 2 * band - H;
    const color = index % 2 === 0 ? first : second;
    return `<path d="M${x} ${H}l${H} -${H}h${band}l-${H} ${H}z" fill="${color}"/>`;
  });
  return `<g fill-opacity=".26">${bands.join('')}</g>`;
}

function renderChevrons(color: string): string {
  const shapes = Array.from({ length: 6 }, (_, index) => {
    const x = index * 220 - 60;
    return `<path d="M${x} 0l150 ${H / 2}l-150 ${H / 2}h62l150 -${H / 2}l-150 -${H / 2}z"/>`;
  });
  return `<g fill="${color}" fill-opacity=".14">${shapes.join('')}</g>`;
}

function renderDots(color: string): string {
  const step = 60;
  const circles = Array.from({ length: 8 }, (_, row) =>
    Array.from({ length: 20 }, (_each, column) => {
      const x = column * step + (row % 2) * (step / 2);
      return `<circle cx="${x}" cy="${row * step + 6}" r="${9 + ((row + column) % 3) * 3}"/>`;
    }),
  );
  return `<g fill="${color}" fill-opacity=".15">${circles.flat().join('')}</g>`;
}

function renderSpines(): string {
  const colors = ['#A44A3F', '#D9A441', '#3F6C6E', '#8A5A83', '#C9C1A8', '#4F6D3A'];
  const books = Array.from({ length: 26 }, (_, index) => {
    const height = H - 40 - ((index * 53) % 120);
    const color = colors[(index * 5) % colors.length];
    const x = index * 44;
    return (
      `<rect x="${x}" y="${H - height}" width="40" height="${height}" rx="4" fill="${color}"/>` +
      `<rect x="${x}" y="${H - height + 34}" width="40" height="9" fill="#FFF" fill-opacity=".5"/>`
    );
  });
  return `<g fill-opacity=".55">${books.join('')}</g>`;
}
