import { STAMP_ICONS } from '#loyalty/cards/card-appearance.js';
import { STAMP_ICON_PATHS } from '#loyalty/cards/stamp-icons.js';
import { registerAsset } from '#web/pages/assets.js';

/** Draws an icon beside each radio button that names one. One file, which browsers cache, instead of 8 KB in the page. */
export const ICON_STYLE = registerAsset(
  'stamp-icons',
  'css',
  STAMP_ICONS.map((icon) => {
    const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><path d="${STAMP_ICON_PATHS[icon]}"/></svg>`;
    return `[value=${icon}]+i{mask-image:url("data:image/svg+xml,${encodeURIComponent(svg)}")}`;
  }).join('\n'),
);
