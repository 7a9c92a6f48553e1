import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';
import type { PassBarcode, PassField } from '#outbound/apple-wallet/pass-json.js';
import { FRONT } from '#loyalty/cards/pass-row.js';
import { findBars } from '#web/web-card/code128-bars.js';
import { findDarkModules } from '#web/web-card/qr-modules.js';
import type { ReadPass } from '../emulators/apple/pass-reader.mjs';

/**
 * Draws the front of a store card as Wallet does, from a real .pkpass: the bar with logo, title and header fields, the
 * strip, one row of equal columns, and the barcode. What does not fit is cut off with an ellipsis, as on a phone. Its
 * font is Inter, which is a little wider than the phone's.
 */

const FONT = readFileSync(
  createRequire(import.meta.url).resolve('@expo-google-fonts/inter/500Medium/Inter_500Medium.ttf'),
).toString('base64');
/** Of a strip, in points (Apple: "Wallet Developer Guide", Pass Design and Creation). */
const STRIP = { width: 375, height: 144 };
const LOGO_HEIGHT = 50;

export type DrawnFront = {
  /** The texts that the phone would cut off. */
  cutTexts: string[];
  /** All texts of the front, in the order in which they are read. */
  texts: string[];
  /** Pictures that could not be shown. */
  brokenPictures: number;
};

export async function drawFront(page: Page, { pass, files }: ReadPass): Promise<DrawnFront> {
  const { storeCard, logoText, backgroundColor, foregroundColor, labelColor, barcodes } = pass;
  const picture = (name: string) => files.get(`${name}@3x.png`)?.toString('base64') ?? '';
  const row = [...storeCard.secondaryFields, ...storeCard.auxiliaryFields];
  await page.setViewportSize({ width: FRONT.width, height: 560 });
  await page.setContent(`<!doctype html><meta charset="utf-8"><style>
    @font-face { font-family: Phone; src: url(data:font/ttf;base64,${FONT}) }
    * { box-sizing: border-box; margin: 0 }
    body { font-family: Phone, sans-serif; background: #fff }
    #pass { width: ${FRONT.width}px; min-height: 540px; border-radius: 12px; overflow: hidden; background: ${backgroundColor}; color: ${foregroundColor}; display: flex; flex-direction: column }
    #top { display: flex; align-items: center; gap: ${FRONT.gap}px; height: 66px; padding: 0 ${FRONT.edge}px }
    #logo { height: ${LOGO_HEIGHT}px; max-width: 160px; flex: none; object-fit: contain; object-position: left }
    #title { font-size: ${FRONT.title}px; flex: 1 1 0 }
    .header { text-align: right; flex: none; max-width: 100% }
    .header b { font-size: ${FRONT.headerValue}px }
    #strip { width: 100%; height: ${Math.round((FRONT.width * STRIP.height) / STRIP.width)}px; display: block }
    #row { display: grid; grid-template-columns: repeat(${Math.max(1, row.length)}, minmax(0, 1fr)); gap: ${FRONT.gap}px; padding: 10px ${FRONT.edge}px; align-items: end }
    #row b { font-size: ${FRONT.value}px }
    i { font-style: normal; font-size: ${FRONT.label}px; color: ${labelColor}; text-transform: uppercase }
    i, b, #title { display: block; font-weight: 500; white-space: nowrap; overflow: hidden; text-overflow: ellipsis }
    #code { margin: auto auto 16px; padding: 12px 14px 6px; background: #fff; color: #000; border-radius: 6px; text-align: center; font-size: 12px }
    #code svg { display: block; margin: auto; max-height: 130px; width: 130px }
    #code .bars { width: 286px; height: 60px }
  </style><div id="pass">
    <div id="top"><img id="logo" alt="" src="data:image/png;base64,${picture('logo')}">
      <span id="title">${escape(logoText ?? '')}</span>
      ${storeCard.headerFields.map((field) => drawField(field, 'header')).join('')}</div>
    <img id="strip" alt="" src="data:image/png;base64,${picture('strip')}">
    <div id="row">${row.map((field) => drawField(field, 'field')).join('')}</div>
    <div id="code">${drawBarcode(barcodes[0])}${escape(barcodes[0]?.altText ?? '')}</div>
  </div>`);
  await page.evaluate('document.fonts.ready');
  return page.evaluate<DrawnFront>(`(async () => {
    const images = [...document.images];
    await Promise.all(images.map((image) => image.decode().catch(() => {})));
    const elements = [...document.querySelectorAll('#title, i, b')].filter((one) => one.textContent !== '');
    const right = document.getElementById('pass').getBoundingClientRect().right - ${FRONT.edge};
    const isCut = (one) => one.scrollWidth > one.clientWidth || one.getBoundingClientRect().right > right + 0.5;
    return {
      cutTexts: elements.filter(isCut).map((one) => one.textContent),
      texts: elements.map((one) => one.textContent),
      brokenPictures: images.filter((image) => image.naturalWidth === 0).length,
    };
  })()`);
}

function drawBarcode(barcode: PassBarcode | undefined): string {
  if (barcode?.format === 'PKBarcodeFormatCode128') {
    const { path, width, height } = findBars(barcode.message);
    return `<svg class="bars" viewBox="0 0 ${width} ${height}" preserveAspectRatio="none"><path d="${path}"/></svg>`;
  }
  // Only that there is one matters here: the phone draws the two other formats.
  const { path, side } = findDarkModules(barcode?.message ?? '', 'M');
  return `<svg viewBox="0 0 ${side} ${side}"><path d="${path}"/></svg>`;
}

function drawField({ label, value }: PassField, kind: string): string {
  const heading = label === undefined ? '' : `<i dir="auto">${escape(label)}</i>`;
  return `<div class="${kind}">${heading}<b dir="auto">${escape(String(value))}</b></div>`;
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
