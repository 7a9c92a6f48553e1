import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import {
  closeContexts,
  expectAccessiblePage,
  keepPicture,
  SIZES,
  startChromium,
} from '../support/browser/chromium.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';

/** Tests in a real browser, with its scripts and without, that a form comes back after its session has ended. */

const PUBLIC_URL = 'http://cards.localhost';
const PASSWORD = 'correct horse';
const MESSAGE = 'Nothing has been sent yet. Your text is kept.';

let service: LocalService;
let store: Client & { email: string };
let browser: Browser;
const contexts: BrowserContext[] = [];

beforeAll(async () => {
  service = await startService({ PUBLIC_URL });
  store = await service.newStore();
  browser = await startChromium({ 'cards.localhost': service.baseUrl });
});
afterEach(() => closeContexts(contexts));
afterAll(async () => {
  await browser?.close();
  await service?.stop();
});

async function signIn(page: Page): Promise<void> {
  await page.locator('input[name=email]').fill(store.email);
  await page.locator('input[name=password]').fill(PASSWORD);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
}

describe('a form whose session has ended, in a browser', () => {
  it.each([true, false])('comes back after signing in (scripts: %s)', async (javaScriptEnabled) => {
    const context = await browser.newContext({
      viewport: SIZES.phone,
      javaScriptEnabled,
      locale: 'en-GB',
    });
    contexts.push(context);
    const page = await context.newPage();
    await page.goto(`${PUBLIC_URL}/app/sign-in`);
    await signIn(page);
    await page.waitForURL(`**/app/stores/${store.accountId}`);
    await page.goto(`${PUBLIC_URL}/app/stores/${store.accountId}/messages/announcements/new`);
    await page.locator('input[name=title]').fill('Closed on Monday');
    await page.locator('textarea[name=text]').fill('We paint the shop.\nSee you on Tuesday!');
    await service.database.query('delete from sessions');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText(MESSAGE).waitFor();
    if (!javaScriptEnabled) {
      await keepPicture(page, 'kept-form-lead');
      await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    }
    await page.locator('input[name=password]').waitFor();
    if (javaScriptEnabled) await expectAccessiblePage(page, 'kept-form-sign-in');
    await signIn(page);
    if (!javaScriptEnabled) {
      await keepPicture(page, 'kept-form-back');
      await page.getByRole('button', { name: 'Back to the form' }).click();
    }
    const text = page.locator('textarea[name=text]');
    await text.waitFor();
    await page.getByText(MESSAGE).waitFor();
    expect(await text.inputValue()).toBe('We paint the shop.\nSee you on Tuesday!');
    expect(await page.locator('input[name=title]').inputValue()).toBe('Closed on Monday');
    if (javaScriptEnabled) await expectAccessiblePage(page, 'kept-form-again');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText(MESSAGE).waitFor({ state: 'detached' });
    await page.getByText('Closed on Monday').first().waitFor();
  });
});
