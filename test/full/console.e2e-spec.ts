import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { chromium, type Browser, type Page } from 'playwright-core';
import { eventually } from '../support/eventually.js';
import { Client, startService, type Service } from '../support/service.js';

/** The console in a real browser: Debian's Chromium, or the one at CHROMIUM_PATH. */

const ARGUMENTS = ['--headless', '--no-sandbox', '--disable-gpu', '--no-first-run'];
/** A folder, to look at the pages oneself. */
const { CHROMIUM_PATH = '/usr/bin/chromium', SCREENSHOTS } = process.env;
const SIZES = { phone: { width: 390, height: 844 }, desktop: { width: 1280, height: 900 } };
/** Browsers trust names below localhost as they trust https. */
const PUBLIC_URL = 'http://cards.localhost';

let service: Service;
let store: Client & { email: string };
let browser: Browser;
let axe: string;
const complaints: string[] = [];

beforeAll(async () => {
  service = await startService({ PUBLIC_URL });
  store = await service.newStore({ timeZone: 'Europe/Berlin' });
  axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
  const { host } = new URL(service.baseUrl);
  browser = await chromium.launch({
    executablePath: CHROMIUM_PATH,
    args: [...ARGUMENTS, `--host-resolver-rules=MAP cards.localhost:80 ${host}`],
  });
});
afterAll(async () => {
  await browser?.close();
  await service?.stop();
});

async function open(path: string, { javaScriptEnabled = true, dark = false } = {}): Promise<Page> {
  const context = await browser.newContext({
    viewport: SIZES.phone,
    javaScriptEnabled,
    colorScheme: dark ? 'dark' : 'light',
  });
  const page = await context.newPage();
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
  });
  await page.goto(PUBLIC_URL + path);
  return page;
}

async function signIn(page: Page): Promise<void> {
  await page.getByLabel('E-mail').fill(store.email);
  await page.getByLabel('Password').fill('correct horse');
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
}

/** What axe finds that keeps people out, at the sizes of phones and desktops. */
async function expectUsable(page: Page, name: string): Promise<void> {
  for (const [size, viewport] of Object.entries(SIZES)) {
    await page.setViewportSize(viewport);
    await page.evaluate(axe);
    const faults = await page.evaluate<{ id: string; impact: string; nodes: { html: string }[] }[]>(
      'axe.run().then(({ violations }) => violations)',
    );
    const serious = faults.filter(({ impact }) => ['serious', 'critical'].includes(impact));
    expect(serious.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)])).toEqual([]);
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(viewport.width);
    if (SCREENSHOTS !== undefined) {
      await page.screenshot({ path: join(SCREENSHOTS, `${name}-${size}.png`), fullPage: true });
    }
  }
  await page.setViewportSize(SIZES.phone);
}

describe('the console in a browser', () => {
  it.each([true, false])(
    'leads from signing in to a token that works until it is revoked, scripts: %s',
    async (javaScriptEnabled) => {
      const name = `till ${javaScriptEnabled}`;
      const page = await open(`/app/stores/${store.accountId}/tokens`, { javaScriptEnabled });
      await signIn(page);
      await page.getByLabel('Name').fill(name);
      await page.getByLabel('Works').selectOption('90');
      await page.getByRole('button', { name: 'Make the token' }).click();
      const token = (await page.locator('#token').textContent()) ?? '';
      const client = new Client(service.baseUrl, store.accountId, token);
      expect((await client.get(client.store)).status).toBe(200);
      await page.getByRole('link', { name: 'I have copied it' }).click();
      expect(await page.locator('main').textContent()).not.toContain(token);
      await page.getByRole('button', { name: `Revoke ${name}` }).click();
      await page.getByText('The token is revoked.').waitFor();
      await eventually(
        async () => (await client.get(client.store)).status,
        (status) => status === 401,
      );
      await page.context().close();
    },
  );

  it.each([false, true])('keeps nobody out, dark: %s', async (dark) => {
    const suffix = dark ? '-dark' : '';
    const page = await open(`/app/stores/${store.accountId}/tokens`, { dark });
    await signIn(page);
    await page.getByLabel('Name').fill('web shop');
    await page.getByRole('button', { name: 'Make the token' }).click();
    await expectUsable(page, `token-made${suffix}`);
    await page.goto(`${PUBLIC_URL}/app/stores/${store.accountId}/users`);
    await page.getByLabel('E-mail').fill(`ada${suffix}@navy.example`);
    await page.getByRole('button', { name: 'Invite' }).click();
    await expectUsable(page, `invited${suffix}`);
    const link = (await page.locator('#link').textContent()) ?? '';
    const invited = await open(new URL(link).pathname, { dark });
    await expectUsable(invited, `invitation${suffix}`);
    await invited.context().close();
    for (const path of ['tokens', 'users', 'settings', 'audit']) {
      await page.goto(`${PUBLIC_URL}/app/stores/${store.accountId}/${path}`);
      await expectUsable(page, path + suffix);
    }
    await page.goto(`${PUBLIC_URL}/app/new-store`);
    await expectUsable(page, `new-store${suffix}`);
    await page.context().close();
  });

  it('complains of nothing', () => {
    expect(complaints).toEqual([]);
  });
});
