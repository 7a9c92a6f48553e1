import { expect } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import type { Client } from '../services/service.js';
import { SIZES } from './chromium.js';

/** The origin at which tests with a real browser reach the service. */
export const CONSOLE_URL = 'http://cards.localhost';
const PASSWORD = 'correct horse';
const MAX_PAGE_BYTES = 30 * 1024;
const NARROW = { width: 320, height: 640 };

/** Opens a page of a store and signs in as its owner. @param path in the store */
export async function signInToConsole(
  browser: Browser,
  store: Client & { email: string },
  path: string,
  options: {
    javaScriptEnabled?: boolean;
    locale?: string;
    extraHTTPHeaders?: Record<string, string>;
  } = {},
): Promise<Page> {
  const context = await browser.newContext({ viewport: SIZES.phone, ...options });
  const page = await context.newPage();
  await page.goto(`${CONSOLE_URL}/app/stores/${store.accountId}/${path}`);
  await page.locator('input[name=email]').fill(store.email);
  await page.locator('input[name=password]').fill(PASSWORD);
  await page.locator('main button[type=submit]').first().click();
  await page.locator('nav.pages').first().waitFor({ state: 'attached' });
  return page;
}

/** Expects that a page fits the narrowest phone, and that its text, style and scripts are small. */
export async function expectSmallPage(page: Page): Promise<void> {
  await page.setViewportSize(NARROW);
  const width = await page.evaluate('document.documentElement.scrollWidth');
  await page.setViewportSize(SIZES.phone);
  expect([page.url(), width]).toEqual([page.url(), NARROW.width]);
  const bytes = await page.evaluate<number>(
    `performance.getEntries().filter(({ entryType, initiatorType }) => entryType === 'navigation' ||
       ['link', 'script', 'css'].includes(initiatorType)).reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0)`,
  );
  expect(bytes).toBeGreaterThan(0);
  expect([page.url(), bytes < MAX_PAGE_BYTES ? 'small' : bytes]).toEqual([page.url(), 'small']);
}
