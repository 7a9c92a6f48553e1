import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { registerAsset } from './assets.js';

/** Lists the icons that pages use, by their names in the set of Lucide. */
export const ICON_NAMES = [
  'arrow-down-up',
  'chart-column',
  'chevron-left',
  'gift',
  'key-round',
  'mail',
  'map-pin',
  'palette',
  'pencil',
  'printer',
  'rotate-ccw-clock',
  'scan-qr-code',
  'scroll-text',
  'settings',
  'stamp',
  'undo-2',
  'user-cog',
  'users',
  'wallet-cards',
  'webhook',
] as const;

export type IconName = (typeof ICON_NAMES)[number];

type IconSet = { icons: Record<string, { body: string }> };

/** Holds the icons of every page in one file, which browsers keep. The part `icon` shows one of them. */
export const ICONS = registerAsset('icons', 'svg', renderSprite());

function renderSprite(): string {
  const file = createRequire(import.meta.url).resolve('@iconify-json/lucide/icons.json');
  const { icons } = JSON.parse(readFileSync(file, 'utf8')) as IconSet;
  const symbols = ICON_NAMES.map((name) => {
    const icon = icons[name];
    if (!icon) throw new Error(`Lucide has no icon ${name}`);
    return `<symbol id="${name}" viewBox="0 0 24 24">${icon.body}</symbol>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg">${symbols.join('')}</svg>`;
}
