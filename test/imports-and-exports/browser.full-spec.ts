import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import type { Browser, Page } from 'playwright-core';
import { AddMember } from '#identity/member.commands.js';
import { CreateUser } from '#identity/identity.commands.js';
import type { CustomerListJson } from '#loyalty/customers/customer-list.dto.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { expectAccessiblePage, SIZES, startChromium } from '../support/browser/chromium.js';
import { pageErrors } from '../support/browser/page-errors.mjs';
import { eventually } from '../support/jest/eventually.js';
import { newImportDispatch } from '../support/services/import-dispatcher.js';
import { cli, startService, type Client, type LocalService } from '../support/services/service.js';
import { runStatistics } from '../support/services/statistics.js';

/** Tests the overview, the numbers, and imports and exports in a real browser. */

const PUBLIC_URL = 'http://cards.localhost';
const PASSWORD = 'correct horse';
const MAX_BYTES = 30 * 1024;

let service: LocalService;
let store: Client & { email: string };
let browser: Browser;
const stopping = new AbortController();
let work: Promise<unknown>;

beforeAll(async () => {
  service = await startService({ PUBLIC_URL });
  store = await service.newStore({ timeZone: 'Europe/Berlin' });
  work = Promise.all([
    newImportDispatch(service).run(stopping.signal),
    runStatistics(service, stopping.signal),
  ]);
  browser = await startChromium({ 'cards.localhost': service.baseUrl });
});
afterAll(async () => {
  await browser?.close();
  stopping.abort();
  await work;
  await service?.stop();
});

/** Opens a page of a store, and signs in. */
async function open(
  path: string,
  { email = store.email, at = store, javaScriptEnabled = true, locale = 'en-GB' } = {},
): Promise<Page> {
  const context = await browser.newContext({ viewport: SIZES.phone, javaScriptEnabled, locale });
  const page = await context.newPage();
  await page.goto(`${PUBLIC_URL}/app/stores/${at.accountId}${path}`);
  await page.locator('input[name=email]').fill(email);
  await page.locator('input[name=password]').fill(PASSWORD);
  await page.locator('input[name=password]').press('Enter');
  await page.waitForURL(`**/app/stores/${at.accountId}${path}`);
  return page;
}

/** Checks the page as it stands: for everybody, on every screen, and light. */
async function expectGoodPage(page: Page, name: string): Promise<void> {
  await expectAccessiblePage(page, name);
  await page.setViewportSize({ width: 320, height: 640 });
  expect([name, await page.evaluate('document.documentElement.scrollWidth')]).toEqual([name, 320]);
  await page.setViewportSize(SIZES.phone);
  const response = await page.reload();
  expect((await response?.body())?.length).toBeLessThan(MAX_BYTES);
}

const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();
const readNumber = (page: Page, label: string) =>
  page.locator(`dt:text-is("${label}") + dd`).first().textContent();

describe('the overview', () => {
  it('leads the owner of a new store through what is left to set up', async () => {
    const at = await service.newStore();
    const page = await open('', { email: at.email, at });
    await page.getByText('1 of').waitFor();
    await expectGoodPage(page, 'overview-new');
    await enrol(at, { rewards: [5] });
    await page.reload();
    expect(await page.locator('.steps .done').count()).toBe(4);
    await page.getByText('4 of 6 done').waitFor();
    await page.getByText('Good to have before many customers come').click();
    await page.getByRole('link', { name: 'Add your first location' }).click();
    await page.waitForURL('**/locations/new');
    await page.context().close();
  });

  it('opens with the counter, the numbers and the last events', async () => {
    const at = await service.newStore();
    const { path } = await enrol(at, { rewards: [5] });
    await at.stamp(path, 2);
    await at.post(`${at.store}/locations`, { location: { name: 'Kiosk', address: 'Kai 2' } });
    const page = await open('', { email: at.email, at });
    const left = page.getByText(
      '4 steps left: Make a poster, Add your logo, Say how you handle data, Invite your team',
    );
    // Once the stamps are counted.
    await eventually(
      () => page.reload().then(() => left.count()),
      (count) => count === 1,
    );
    const headings = await page.locator('main h2').allTextContents();
    expect(headings).toEqual(['Today', 'Last 30 days', 'Latest', 'All pages']);
    expect(await page.locator('main a').first().textContent()).toContain('Open the counter');
    expect(await page.locator('.timeline li').count()).toBeLessThanOrEqual(5);
    await expectGoodPage(page, 'overview');
    await page.setViewportSize(SIZES.desktop);
    expect(await page.getByRole('heading', { name: 'All pages' }).isVisible()).toBe(false);
    await page.getByText('4 steps left').click();
    await press(page, 'Hide this');
    await page.getByRole('heading', { name: 'Today' }).waitFor();
    expect(await page.getByText('4 steps left').count()).toBe(0);
    await page.reload();
    expect(await page.getByText('4 steps left').count()).toBe(0);
    await page.context().close();
  });

  it('shows the team no numbers', async () => {
    pageErrors.expect(/status of 403/);
    const email = 'staff-of-numbers@example.com';
    await service.execute(new CreateUser(cli, email, 'نور', PASSWORD));
    await service.execute(new AddMember(cli, store.accountId, email, 'staff'));
    const page = await open('', { email });
    await page.getByRole('link', { name: 'Open the counter' }).waitFor();
    expect(await page.locator('.figures, .steps').count()).toBe(0);
    for (const path of ['numbers', 'transfers']) {
      const response = await page.goto(`${PUBLIC_URL}/app/stores/${store.accountId}/${path}`);
      expect(response?.status()).toBe(403);
    }
    await page.context().close();
  });
});

describe('the numbers', () => {
  it('say where to begin while there are none', async () => {
    const at = await service.newStore();
    await at.post(`${at.store}/cards`, { card: { name: 'Coffee' } });
    const page = await open('/numbers', { email: at.email, at });
    await page.getByText('No numbers yet').waitFor();
    expect(await page.locator('.empty .button').count()).toBe(1);
    await expectGoodPage(page, 'numbers-empty');
    await page.context().close();
  });

  it('show today, the days before, and who did what', async () => {
    const { path, rewards } = await enrol(store, {
      card: { name: 'قهوة ☕ and a name that goes on and on until it needs a second line' },
      rewards: [3],
    });
    const { body: location } = await store.post<{ id: number }>(`${store.store}/locations`, {
      location: { name: 'Harbour', address: 'Vorsetzen 32, Hamburg' },
    });
    await store.post(`${path}/stamp`, { stamps: 4, location_id: location.id });
    await store.stamp(path, 2);
    await store.post(`${path}/redeem`, { reward_id: rewards[0]?.id });
    const page = await open('/numbers');
    await eventually(
      async () => {
        await page.reload();
        return readNumber(page, 'Stamps');
      },
      (count) => count === '6',
    );
    expect(await readNumber(page, 'Visits')).toBe('1');
    expect(await readNumber(page, 'Rewards redeemed')).toBe('1');
    expect(await readNumber(page, 'Rewards ready to redeem')).toBe('1');
    const chart = page.getByRole('slider', { name: /^Stamps: 6 in all/ });
    const value = page.locator('.chart .peak').first();
    expect(await value.textContent()).toBe('max. 6');
    await chart.click({ position: { x: 2, y: 50 } });
    expect(await value.textContent()).toMatch(/: 0$/);
    await page.keyboard.press('End');
    expect(await value.textContent()).toMatch(/: 6$/);
    expect(await chart.getAttribute('aria-valuetext')).toBe(await value.textContent());
    await page.getByText('Show as a table').first().click();
    const rows = page.locator('table.numbers').first().locator('tbody tr');
    expect(await rows.count()).toBe(31);
    expect((await rows.first().locator('td').allTextContents()).slice(0, 2)).toEqual(['6', '1']);
    const table = (name: string) => page.getByRole('table', { name }).locator('tbody tr');
    expect(await table('By location').allTextContents()).toHaveLength(2);
    expect(await table('By person').first().textContent()).toContain('Tills and apps');
    await expectGoodPage(page, 'numbers');
    await page.getByRole('link', { name: 'Harbour' }).click();
    await page.getByText('Clear filters').first().waitFor();
    expect(await readNumber(page, 'Stamps')).toBe('4');
    await page.locator('summary', { hasText: 'Last 30 days' }).click();
    await page.getByRole('link', { name: 'Last 12 months' }).click();
    await page.waitForURL(/period=months.*location_id=/);
    await page.getByRole('slider', { name: /^Stamps: 4 in all/ }).waitFor();
    await page.context().close();
  });

  it('come in the language of the browser', async () => {
    const page = await open('/numbers', { locale: 'de-DE' });
    await page.getByRole('heading', { name: 'Wiederkehrende Kunden' }).waitFor();
    expect(await page.locator('main').textContent()).not.toMatch(/undefined|NaN/);
    await page.context().close();
  });
});

const CUSTOMERS = [
  'Wer;Ort;Kontakt;Punkte',
  'Ömer;Hamburg;oemer@example.com;3',
  'نور;Bremen;nour@example.com;0',
  'Zoë 🌙;Kiel;keine;1',
].join('\n');

describe.each([true, false])('an import, scripts: %s', (javaScriptEnabled) => {
  it('goes from an unknown file to its customers and back', async () => {
    pageErrors.expect(/status of 422/);
    const at = await service.newStore();
    const { card } = await enrol(at, { card: { name: 'Coffee' } });
    const page = await open('/transfers', { email: at.email, at, javaScriptEnabled });
    await page.getByText('No imports yet').waitFor();
    if (javaScriptEnabled) await expectGoodPage(page, 'transfers');
    const upload = async (buffer: Buffer, name = 'customers.csv') => {
      await page.getByLabel('File').setInputFiles({ name, mimeType: 'text/csv', buffer });
      await press(page, 'Upload and check');
    };
    await upload(Buffer.from('504b0304', 'hex'), 'customers.xlsx');
    await page.getByText('This is an Excel workbook').last().waitFor();
    await page.getByLabel('Card for these customers').selectOption(String(card.id));
    await upload(Buffer.from(CUSTOMERS));
    await waitForState(page, 'Ready to start', javaScriptEnabled);
    await page.getByText('every row has an error').waitFor();
    await page.getByText('For example Ömer, نور, Zoë 🌙').waitFor();
    if (javaScriptEnabled) await expectGoodPage(page, 'import-columns');
    await page.getByLabel('Wer').selectOption('first_name');
    await press(page, 'Check again');
    await page.getByRole('alert').first().waitFor();
    await page.getByLabel('Kontakt').selectOption('email');
    await page.getByLabel('Punkte').selectOption('stamps');
    await press(page, 'Check again');
    await waitForState(page, 'Ready to start', javaScriptEnabled);
    const start =
      '2 rows will be imported. Everyone gets the card “Coffee”. 1 row with errors will be left out.';
    await page.getByText(start).waitFor();
    if (javaScriptEnabled) await expectGoodPage(page, 'import-ready');
    await press(page, 'Start the import');
    await waitForState(page, 'Done', javaScriptEnabled);
    expect(await readNumber(page, 'New customers')).toBe('2');
    const downloading = page.waitForEvent('download');
    await page.getByRole('link', { name: 'Download them' }).click();
    expect(readFileSync(await (await downloading).path(), 'utf8')).toContain(
      'Zoë 🌙;Kiel;keine;1;4',
    );
    await page.getByText('2 customers imported.').waitFor();
    expect(await page.getByRole('link', { name: 'See your customers' }).count()).toBe(1);
    expect(await page.locator('table.errors').textContent()).toMatch(/Zoë 🌙.*E-mail “keine”: /);
    const list = () => at.get<CustomerListJson>(`${at.store}/customers`);
    expect((await list()).body.customers).toHaveLength(3);
    await page.getByRole('link', { name: 'Undo the import' }).click();
    await page.getByText('2 customers created by it will be erased').waitFor();
    await press(page, 'Undo it');
    await waitForState(page, 'Undone', javaScriptEnabled);
    await page.getByRole('link', { name: 'Import and export' }).click();
    await page.getByText('0 changed').waitFor();
    await page.context().close();
  });
});

it('an import that ends after a click on a link does not take the click back', async () => {
  const at = await service.newStore();
  await enrol(at);
  const page = await open('/transfers', { email: at.email, at });
  const holder = new pg.Client(service.database.url);
  await holder.connect();
  try {
    // Keeps the import from being checked.
    await holder.query('begin');
    await holder.query('set local idle_in_transaction_session_timeout = 0');
    await holder.query('lock table import_rows in exclusive mode');
    const buffer = Buffer.from('First name\nNour\n');
    await page
      .getByLabel('File')
      .setInputFiles({ name: 'customers.csv', mimeType: 'text/csv', buffer });
    await press(page, 'Upload and check');
    await page.getByRole('progressbar').waitFor();
    await page.route('**/transfers', async (route) => {
      await holder.query('rollback');
      await eventually(
        () =>
          holder.query(`select from imports where account_id = $1 and state = 'checking'`, [
            at.accountId,
          ]),
        ({ rowCount }) => rowCount === 0,
      );
      // The page learns of the end, and then polls again, or is loaded anew.
      await page.waitForRequest(/imports[/]/);
      await page.waitForRequest(/imports[/]/);
      await route.continue();
    });
    await page.getByRole('link', { name: 'Import and export' }).click();
    await page.waitForURL('**/transfers');
  } finally {
    await holder.end();
  }
  await page.context().close();
});

/** Waits for a state: the page shows it by itself, or after it is refreshed. */
async function waitForState(page: Page, state: string, isByItself: boolean): Promise<void> {
  const tag = page.locator('h1 + .tag').getByText(state, { exact: true });
  if (isByItself) return tag.waitFor();
  await eventually(
    async () => {
      await page.goto(page.url());
      return tag.count();
    },
    (count) => count === 1,
  );
}

describe('the exports', () => {
  it('are downloads, all of them or of some days', async () => {
    pageErrors.expect(/status of 422/);
    const page = await open('/transfers');
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'CSV Customers', exact: true }).click(),
    ]);
    expect(download.suggestedFilename()).toMatch(/^customers-\d+-\d{4}-\d\d-\d\d[.]csv$/);
    expect(readFileSync(await download.path(), 'utf8')).toContain('first_name');
    await page.getByText('Choose format and dates').click();
    await page.getByLabel('From').fill('2026-02-01');
    await page.getByLabel('To', { exact: true }).fill('2026-01-01');
    await press(page, 'Download');
    await page.getByText('The last day must not be before the first').last().waitFor();
    await page.getByLabel('From').fill('2026-01-01');
    const [empty] = await Promise.all([page.waitForEvent('download'), press(page, 'Download')]);
    const lines = readFileSync(await empty.path(), 'utf8')
      .trim()
      .split('\n');
    expect([lines.length, lines[0]]).toEqual([1, expect.stringContaining('reward_name')]);
    await page.context().close();
  });
});
