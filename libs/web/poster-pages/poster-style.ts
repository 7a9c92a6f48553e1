import { loadAsset } from '#web/pages/assets.js';

/** Styles the pages of posters, for shops and for guests. */
export const POSTER_STYLE = loadAsset(import.meta.url, './assets/posters.css');
