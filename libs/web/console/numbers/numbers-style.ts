import { loadAsset } from '#web/pages/assets.js';

/** Styles charts and tables of numbers. */
export const NUMBERS_STYLE = loadAsset(import.meta.url, './assets/numbers.css');
export const CHART_SCRIPT = loadAsset(import.meta.url, './assets/bar-chart.js');
