import { loadAsset } from '#web/pages/assets.js';

/** Chooses the time zone and the country of the browser in a form that has both. */
export const BROWSER_REGION_SCRIPT = loadAsset(import.meta.url, './assets/browser-region.js');
