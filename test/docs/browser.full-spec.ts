import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import {
  expectAccessiblePage,
  keepPicture,
  SIZES,
  startChromium,
} from '../support/browser/chromium.js';
import { eventually } from '../support/jest/eventually.js';
import { pageErrors } from '../support/browser/page-errors.mjs';
import { measureFirstPaint, printTime, startWireBytes } from '../support/browser/wire-bytes.js';
import { startService, type Service } from '../support/services/service.js';

/** Tests the documentation in a real browser, at a host that the service does not know. */

const HOST = 'http://elsewhere.localhost';

let service: Service;
let token: string;
let browser: Browser;
/** Requests of any page to other hosts. */
const foreignRequests: string[] = [];

/** Selects the repeated elements that axe need not judge: all of them would take it minutes on a busy machine. */
const REPEATED: Record<string, string> = {
  '/rules': 'main > ul > li:not(:nth-child(8n + 1))',
  '/reference': '.group > article:not(:nth-of-type(4n + 1))',
};

/** Removes elements from a page that fits phones and desktops with them. */
async function removeRepeated(page: Page, selector: string): Promise<void> {
  for (const viewport of Object.values(SIZES)) {
    await page.setViewportSize(viewport);
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(viewport.width);
  }
  const elements = page.locator(selector);
  expect(await elements.count()).toBeGreaterThan(50);
  await elements.evaluateAll((all) => all.forEach((element) => element.remove()));
}

beforeAll(async () => {
  service = await startService({ PUBLIC_URL: 'https://cards.example' });
  token = String((await service.newStore()).token);
  browser = await startChromium({ 'elsewhere.localhost': service.baseUrl });
});

afterAll(async () => {
  await browser?.close();
  await service?.stop();
});

async function open(
  path: string,
  { javaScriptEnabled = true, viewport = SIZES.desktop } = {},
): Promise<Page> {
  const context = await browser.newContext({ viewport, javaScriptEnabled });
  return openIn(context, path);
}

async function openIn(context: BrowserContext, path: string): Promise<Page> {
  const page = await context.newPage();
  page.on('request', (request) => {
    const { protocol, origin } = new URL(request.url());
    if (protocol.startsWith('http') && origin !== HOST) foreignRequests.push(request.url());
  });
  await page.goto(HOST + path);
  return page;
}

describe('the documentation in a browser', () => {
  it.each([
    '',
    '/first-stamp',
    '/errors',
    '/webhooks',
    '/webhooks-in-detail',
    '/automation',
    '/settings',
    '/rules',
    '/changelog',
    '/clients/typescript',
    '/clients/python',
    '/reference',
  ])('is accessible at /docs%s', async (path) => {
    const page = await open(`/docs${path}`);
    const repeated = REPEATED[path];
    if (repeated !== undefined) await removeRepeated(page, repeated);
    await expectAccessiblePage(page, `docs${path.replaceAll('/', '-')}`);
    await page.context().close();
  });

  it('has an accessible first page and 404 page', async () => {
    pageErrors.expect(/status of 404/);
    const page = await open('/');
    await expectAccessiblePage(page, 'first-page');
    await page.goto(`${HOST}/nope`);
    await expectAccessiblePage(page, 'not-found');
    await page.context().close();
  });

  it('shows each sample in the language that was chosen last', async () => {
    const page = await open('/docs/first-stamp');
    const listVisibleLanguages = () =>
      page
        .locator('.samples figure:visible')
        .evaluateAll((figures) => [
          ...new Set(figures.map((figure) => figure.getAttribute('data-language'))),
        ]);
    // The page has a function that only C#, Java and Go need.
    expect(await listVisibleLanguages()).toEqual(['shell', 'csharp']);
    await page.getByRole('button', { name: 'Java', exact: true }).first().click();
    expect(await listVisibleLanguages()).toEqual(['shell', 'java']);
    await page.getByRole('button', { name: 'Python' }).nth(2).click();
    expect(await listVisibleLanguages()).toEqual(['python', 'csharp']);
    await keepPicture(page, 'docs-python');
    await page.locator('.docs-menu').getByRole('link', { name: 'Webhooks', exact: true }).click();
    await page.getByRole('heading', { name: 'Webhooks', level: 1 }).waitFor();
    expect(await listVisibleLanguages()).toEqual(['python']);
    for (const place of ['#tag/status/getStatus', '/try?operation=getStatus']) {
      await page.goto(`${HOST}/docs/reference${place}`);
      await page.getByText('response = inkpad.get_status()').waitFor();
    }
    await page.context().close();
  });

  it('copies a sample with the address of this host', async () => {
    const page = await open('/docs/first-stamp');
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.getByRole('button', { name: /^Copy/ }).first().click();
    expect(await page.evaluate('navigator.clipboard.readText()')).toContain(`INKPAD_URL=${HOST}`);
    await page.context().close();
  });

  it('finds an operation from the keyboard on every screen size', async () => {
    for (const viewport of Object.values(SIZES)) {
      const page = await open('/docs', { viewport });
      await page.keyboard.press('/');
      await page.getByRole('combobox').fill('redeem rew');
      await page
        .getByRole('option', { name: /Redeem a reward/ })
        .first()
        .waitFor();
      await expectAccessiblePage(page, `docs-search-${viewport.width}`);
      await page.keyboard.press('Enter');
      await page.waitForURL(/\/docs\/.+/);
      await page.context().close();
    }
  });

  it.each([
    ['refund', '9. Refund and correct'],
    ['sandbox', 'Testing'],
    ['sdk', 'TypeScript client'],
    ['csharp', 'OpenAPI document'],
    ['postman', 'Postman collection'],
    ['changelog', 'Changelog'],
    ['phone', 'List or search customers'],
    ['insufficient_stamps', 'insufficient_stamps'],
    ['webhooks', 'Webhooks'],
    ['retry', 'Retries'],
    ['stamp', 'Add stamps'],
    ['stamp-24', 'STAMP-24'],
    ['database_pool', 'DATABASE_POOL'],
    ['stamp.earned', 'stamp.earned'],
  ])('finds %s', async (words, title) => {
    const page = await open('/docs');
    await page.keyboard.press('/');
    await page.getByRole('combobox').fill(words);
    const first = page.getByRole('option').first();
    await first.locator('strong', { hasText: title }).waitFor();
    expect(await first.locator('strong').textContent()).toBe(title);
    await page.context().close();
  });

  it('lists the operations without JavaScript, and marks in the menu which one is read', async () => {
    const page = await open('/docs/reference', { javaScriptEnabled: false });
    const operation = page.locator('article', { hasText: 'Add stamps' }).first();
    expect(await operation.textContent()).toContain('external_ref');
    await keepPicture(page, 'reference-no-script');
    await page.context().close();
    const otherPage = await open(
      '/docs/reference#tag/webhook-subscriptions/createWebhookSubscription',
    );
    const link = otherPage.locator('.docs-menu [aria-current=location]');
    await link.filter({ hasText: 'Create a webhook subscription' }).waitFor();
    expect(await link.evaluate((element) => element.getBoundingClientRect().top)).toBeLessThan(900);
    await otherPage.context().close();
  });

  it('prints dark on white, with the fields of every operation and without menus', async () => {
    const page = await open('/docs/reference');
    await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
    const fields = page.locator('.operation details dl').first();
    expect(await fields.evaluate((list) => list.getBoundingClientRect().height)).toBeGreaterThan(
      50,
    );
    for (const place of ['.docs-top', '.docs-menu', '.docs-languages', 'figure.code button']) {
      expect([place, await page.locator(place).first().isVisible()]).toEqual([place, false]);
    }
    const color = await page.evaluate<string>(
      "getComputedStyle(document.querySelector('figure.code code')).color",
    );
    expect(color).toBe('rgb(30, 28, 34)');
    await page.context().close();
  });

  it('shows its pictures in light and dark', async () => {
    const page = await open('/docs/first-stamp');
    const picture = page.getByRole('img', { name: 'The card on its web page' });
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      await picture.scrollIntoViewIfNeeded();
      const read = () =>
        page.evaluate<[string, number]>(
          "(({ currentSrc, naturalWidth }) => [currentSrc, naturalWidth])(document.querySelector('img.screen'))",
        );
      await eventually(read, ([source, width]) => source.includes(colorScheme) && width > 500);
    }
    await page.context().close();
  });

  it('shows its samples and no button without JavaScript', async () => {
    const page = await open('/docs/first-stamp', {
      javaScriptEnabled: false,
      viewport: SIZES.phone,
    });
    expect(await page.locator('.samples figure:visible').count()).toBeGreaterThan(15);
    expect(await page.getByRole('button').filter({ visible: true }).count()).toBe(0);
    await keepPicture(page, 'docs-no-script');
    await page.context().close();
  });

  it('takes less than 300 KB for the reference at first load', async () => {
    const wire = await startWireBytes(service.baseUrl);
    const fresh = await startChromium({ 'elsewhere.localhost': wire.baseUrl });
    try {
      for (const path of ['/docs/reference', '/docs/admin-reference']) {
        const before = wire.countReceived();
        const page = await (await fresh.newContext({ viewport: SIZES.phone })).newPage();
        await page.goto(HOST + path, { waitUntil: 'networkidle' });
        const bytes = wire.countReceived() - before;
        expect([path, bytes > 10_000 && bytes < 300_000, bytes]).toEqual([path, true, bytes]);
        const otherPage = await (await fresh.newContext({ viewport: SIZES.phone })).newPage();
        printTime(path, bytes, await measureFirstPaint(otherPage, HOST + path));
      }
    } finally {
      await fresh.close();
      await wire.close();
    }
  });

  it('tries the one operation that was chosen in the reference, and leads back to it without one', async () => {
    const page = await open('/docs/reference');
    const operation = page.locator('article', {
      has: page.getByRole('heading', { name: 'List cards', exact: true }),
    });
    await operation.getByRole('link', { name: 'Try it' }).click();
    await page.getByRole('button', { name: /Test Request/ }).waitFor();
    expect(await page.getByText('Create a card').count()).toBe(0);
    for (const query of ['', '?operation=listNothing']) {
      await page.goto(`${HOST}/docs/reference/try${query}`);
      await page.waitForURL(`${HOST}/docs/reference`);
    }
    await page.context().close();
  });

  it('stores no token that is typed into the reference, and forgets it on reload', async () => {
    const page = await open('/docs/reference/try?operation=listCards');
    const field = page.getByPlaceholder('Token').first();
    await field.fill(token);
    await field.blur();
    expect(await field.inputValue()).toBe(token);
    const readStorage = () =>
      page.evaluate<string>(
        '[localStorage, sessionStorage].flatMap((one) => Object.values(one)).join() + document.cookie',
      );
    expect(await readStorage()).not.toContain(token);
    await page.reload();
    await field.waitFor();
    expect([await field.inputValue(), (await readStorage()).includes(token)]).toEqual(['', false]);
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      await page.locator(`body.${colorScheme}-mode`).waitFor();
      for (const [name, viewport] of Object.entries(SIZES)) {
        await page.setViewportSize(viewport);
        await page.locator('h1').first().waitFor();
        const width = await page.evaluate('document.documentElement.scrollWidth');
        expect([name, width]).toEqual([name, viewport.width]);
        await keepPicture(page, `reference-${name}-${colorScheme}`);
      }
    }
    await page.context().close();
  });

  it('requests nothing from other hosts', () => {
    expect(foreignRequests).toEqual([]);
  });
});
