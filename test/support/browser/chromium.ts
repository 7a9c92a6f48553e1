import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { expect } from '@jest/globals';
import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core';
import { eventually } from '../jest/eventually.js';
import { pageErrors } from './page-errors.mjs';

/** A real browser: Debian's Chromium, or the one at CHROMIUM_PATH. SCREENSHOTS is a folder, to look at the pages oneself. */

const { CHROMIUM_PATH = '/usr/bin/chromium', SCREENSHOTS } = process.env;
const ARGUMENTS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'];
/** Only guards against waiting forever, as Jest's limit does: a busy machine may be many times slower. */
export const WITHIN_MS = 120_000;
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

export const SIZES = {
  phone: { width: 390, height: 844 },
  desktop: { width: 1280, height: 900 },
};

/**
 * Starts a browser whose page errors are watched.
 * @param names hosts that lead to these addresses. Browsers trust names below localhost as they trust https.
 * @param more arguments, such as those of a camera
 */
export async function startChromium(
  names: Record<string, string> = {},
  more: readonly string[] = [],
): Promise<Browser> {
  const rules = Object.entries(names).map(
    ([name, baseUrl]) => `MAP ${name}:80 ${new URL(baseUrl).host}`,
  );
  const browser = await chromium.launch({
    executablePath: CHROMIUM_PATH,
    args: [
      ...ARGUMENTS,
      ...more,
      ...(rules.length > 0 ? [`--host-resolver-rules=${rules.join()}`] : []),
    ],
  });
  browser.on('context', (context) => {
    context.setDefaultTimeout(WITHIN_MS);
    pageErrors.watch(context);
  });
  return browser;
}

/** The rules of axe that depend on colours. */
const COLOUR_RULES = ['color-contrast', 'link-in-text-block'];
/** Describes what is on a page, whatever its colours are. */
const CONTENT = `document.documentElement.outerHTML +
  [...document.querySelectorAll('*')].map((one) => Number(one.checkVisibility({ visibilityProperty: true })))`;
/** A page as it stands: fits phones and desktops, and axe finds nothing that keeps people out, in light and dark. */
export async function expectAccessiblePage(page: Page, name: string): Promise<void> {
  // A click that sends a form returns before the next page has a document.
  await page.waitForLoadState();
  for (const [size, viewport] of Object.entries(SIZES)) {
    await page.setViewportSize(viewport);
    let content: unknown;
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      // Until media queries have been evaluated for this size, and their listeners called.
      await page.evaluate(
        'new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r)))',
      );
      const at = [name, size, colorScheme];
      const width = await page.evaluate('document.documentElement.scrollWidth');
      expect([...at, width]).toEqual([...at, viewport.width]);
      expect([...at, await page.evaluate(COUNT_BARE_LINKS)]).toEqual([...at, 0]);
      const before = content;
      content = await page.evaluate(CONTENT);
      // The other rules have judged the same content in the other colours.
      const violations = await findViolations(page, before === content ? COLOUR_RULES : undefined);
      const serious = violations.filter(({ impact }) => !['minor', 'moderate'].includes(impact));
      expect([...at, serious]).toEqual([...at, []]);
      await keepPicture(page, at.join('-'));
    }
  }
  await page.emulateMedia({ colorScheme: null });
  await page.setViewportSize(SIZES.phone);
}

/** Counts the links that have the colour of no style sheet, but that of the browser. */
const COUNT_BARE_LINKS = `[...document.links].filter((link) => ['rgb(0, 0, 238)', 'rgb(158, 158, 255)'].includes(getComputedStyle(link).color)).length`;

/** @param runOnly the rules; by default all that axe enables */
async function findViolations(page: Page, runOnly?: string[]) {
  const options = JSON.stringify({ runOnly, resultTypes: ['violations'], selectors: false });
  // Not as a script of the page, which its policy would not run. Once for each page, as that takes longest.
  if (await page.evaluate('!globalThis.axe')) await page.evaluate(`${AXE}; undefined`);
  return page.evaluate<{ id: string; impact: string; nodes: string[] }[]>(
    `axe.run(${options}).then(({ violations, passes }) => passes.length < ${runOnly ? 1 : 5} ? ['nothing was looked at'] : violations.map(({ id, impact, nodes }) =>
      ({ id, impact, nodes: nodes.map(({ html, failureSummary }) => html + ' ' + failureSummary) })))`,
  );
}

/**
 * Returns a script that puts off what a page does by itself after one of these times, in milliseconds: a test may need
 * longer to see it than people do.
 */
export const keepShown = (...times: number[]): string => `{
  const { setTimeout } = globalThis;
  globalThis.setTimeout = (act, ms, ...rest) =>
    setTimeout(act, ${JSON.stringify(times)}.includes(ms) ? 3600000 : ms, ...rest);
}`;

/**
 * Closes contexts, and removes them from the list. Their pages are emptied first: Chromium may never close a context while one
 * of its pages loads through a service worker.
 */
export async function closeContexts(contexts: BrowserContext[]): Promise<void> {
  for (const context of contexts.splice(0)) {
    for (const page of context.pages()) {
      // The page may be loading anew just then, which ends this navigation, and a second one ends the first.
      await eventually(
        () => page.goto('about:blank').catch(() => undefined),
        () => page.url() === 'about:blank',
      );
    }
    await context.close();
  }
}

export async function keepPicture(page: Page, name: string): Promise<void> {
  if (SCREENSHOTS === undefined) return;
  await page.screenshot({ path: join(SCREENSHOTS, `${name}.png`), fullPage: true });
}
