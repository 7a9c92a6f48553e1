import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { closeContexts, SIZES, startChromium } from '../support/browser/chromium.js';
import { createStaff, LASTING_OUTCOMES, signInAtCounter } from '../support/browser/counter.js';
import { pageErrors } from '../support/browser/page-errors.mjs';
import {
  startSilentNetwork,
  type NetworkMode,
  type SilentNetwork,
} from '../support/browser/silent-network.js';
import { newPoster, SignupForm } from '../support/browser/signup.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { eventually } from '../support/jest/eventually.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';

/** Tests the pages that phones have stored on a network that accepts connections and says nothing. */

const PUBLIC_URL = 'http://cards.localhost';
/** In which a stored page is there, of which the worker waits two and a half. */
const WITHIN_MS = 4_000;

let service: LocalService;
let store: Client & { email: string };
let network: SilentNetwork;
let browser: Browser;
const contexts: BrowserContext[] = [];

beforeAll(async () => {
  service = await startService({ PUBLIC_URL });
  store = await service.newStore();
  network = await startSilentNetwork(service.baseUrl);
  browser = await startChromium({ 'cards.localhost': network.baseUrl });
});
beforeEach(() => pageErrors.allow(/ERR_(FAILED|ABORTED|EMPTY_RESPONSE|CONNECTION)/));
afterEach(async () => {
  network.setMode('open');
  network.release();
  await closeContexts(contexts);
});
afterAll(async () => {
  await browser?.close();
  await network?.close();
  await service?.stop();
});

async function openPage(): Promise<Page> {
  const context = await browser.newContext({ viewport: SIZES.phone, locale: 'en-GB' });
  contexts.push(context);
  await context.addInitScript({ content: LASTING_OUTCOMES });
  return context.newPage();
}

/** Opens a card, and waits until its worker has stored the page and its files. */
async function openCard(path: string): Promise<Page> {
  const page = await openPage();
  await page.goto(PUBLIC_URL + path);
  await waitUntilStored(page, 3);
  // From now on through the worker.
  await page.reload();
  return page;
}

async function openCounter(): Promise<Page> {
  const page = await openPage();
  const { email } = await createStaff(service, store, 'Mira');
  await signInAtCounter(page, `${PUBLIC_URL}/counter/${store.accountId}`, email);
  // The scripts, style sheets and the page itself.
  await waitUntilStored(page, 11);
  return page;
}

async function waitUntilStored(page: Page, count: number): Promise<void> {
  await eventually(
    () =>
      page.evaluate<number>(
        'caches.keys().then(async ([name]) => name ? (await (await caches.open(name)).keys()).length : 0)',
      ),
    (stored) => stored > count,
  );
}

/** Opens an address. @returns how long it took until its text was there, as the browser measures it */
async function measure(page: Page, open: () => Promise<unknown>): Promise<number> {
  await open();
  return page.evaluate<number>(
    `performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd`,
  );
}

const reload = (page: Page) => () => page.reload({ waitUntil: 'commit' });
const readBalance = (page: Page) => page.locator('.count strong').textContent();

const MODES: NetworkMode[] = ['silent', 'head only'];

describe('a card on a network that says nothing', () => {
  it.each(MODES)('is there within four seconds, and shows what comes late (%s)', async (mode) => {
    const card = await enrol(store);
    const page = await openCard(card.page);
    expect(await readBalance(page)).toBe('0 / 10');
    network.setMode(mode);
    await card.stamp(3);
    const ms = await measure(page, reload(page));
    await page.locator('#card').waitFor();
    expect(ms).toBeLessThan(WITHIN_MS);
    expect(await readBalance(page)).toBe('0 / 10');
    // It is not what the card is now, and says so. The head of a stream says that there is a connection.
    if (mode === 'silent') await page.locator('#offline').waitFor({ state: 'visible' });
    expect(network.listHeld()).toContain(card.page);
    // The other requests stay without a response.
    network.release();
    await eventually(
      () => readBalance(page),
      (text) => text === '3 / 10',
    );
    network.setMode('silent');
    await page.reload({ waitUntil: 'commit' });
    await page.locator('#card').waitFor();
    expect(await readBalance(page)).toBe('3 / 10');
  });

  it('does not let a response that was overtaken take the place of a newer one', async () => {
    const card = await enrol(store);
    const page = await openCard(card.page);
    await page.route('**/events?*', (route) => route.abort());
    const read = () =>
      page.evaluate<string>(
        `caches.match(location.origin + location.pathname).then((response) => response.text())`,
      );
    network.setMode('head only');
    await page.reload({ waitUntil: 'commit' });
    await page.locator('#card').waitFor();
    network.setMode('open');
    await card.stamp(2);
    await page.evaluate('refresh()');
    await eventually(read, (text) => text.includes('2 of 10'));
    network.release();
    await page.evaluate('refresh()');
    expect(await read()).toContain('2 of 10');
    expect(await readBalance(page)).toBe('2 / 10');
  });

  it('goes when the late response says that it was deleted', async () => {
    const card = await enrol(store);
    const page = await openCard(card.page);
    network.setMode('silent');
    const customer = `${store.store}/customers/${card.customer.id}`;
    expect((await store.post(`${customer}/erase`)).status).toBeLessThan(300);
    await page.reload({ waitUntil: 'commit' });
    await page.locator('#card').waitFor();
    pageErrors.allow(/status of 404/);
    network.setMode('open');
    network.release();
    await page.locator('#card').waitFor({ state: 'detached' });
    const isStored = 'caches.match(location.href).then((response) => response !== undefined)';
    expect(await page.evaluate(isStored)).toBe(false);
  });

  it('is there after the sign-up too', async () => {
    const poster = await newPoster(store);
    const form = await SignupForm.open(service.baseUrl, PUBLIC_URL, poster);
    const email = `${randomUUID()}@mail.example`;
    const { location } = await form.send({ first_name: 'Anna', email });
    const { pathname } = new URL(location, PUBLIC_URL);
    const page = await openCard(pathname);
    network.setMode('silent');
    const ms = await measure(page, () =>
      page.goto(new URL(location, PUBLIC_URL).href, { waitUntil: 'commit' }),
    );
    await page.locator('#card').waitFor();
    expect(ms).toBeLessThan(WITHIN_MS);
  });

  it('waits for the network where nothing is stored', async () => {
    const card = await enrol(store);
    const page = await openPage();
    network.setMode('silent');
    const loaded = page.goto(PUBLIC_URL + card.page);
    await eventually(
      () => Promise.resolve(network.listHeld()),
      (paths) => paths.includes(card.page),
    );
    network.setMode('open');
    network.release();
    await loaded;
    expect(await readBalance(page)).toBe('0 / 10');
  });
});

describe('the counter on a network that says nothing', () => {
  it.each(MODES)(
    'is there within four seconds, saves what is scanned, and sends it once the network responds (%s)',
    async (mode) => {
      const page = await openCounter();
      const { customerCard, path } = await enrol(store);
      network.setMode(mode);
      const ms = await measure(page, reload(page));
      expect(ms).toBeLessThan(WITHIN_MS);
      await page.getByLabel('Code of the card').fill(customerCard.code);
      await page.getByRole('button', { name: 'Stamp', exact: true }).click();
      await page.locator('#result').getByText('Saved for later').waitFor();
      network.setMode('open');
      network.release();
      await page.keyboard.press('Escape');
      await page.locator('#person').waitFor();
      await eventually(
        async () => (await store.get<{ stamps_count: number }>(path)).body.stamps_count,
        (count) => count === 1,
      );
      expect(page.url()).toBe(`${PUBLIC_URL}/counter/${store.accountId}`);
    },
  );

  it('is there from the icon of the installed counter as well', async () => {
    const page = await openCounter();
    network.setMode('silent');
    const ms = await measure(page, () =>
      page.goto(`${PUBLIC_URL}/counter`, { waitUntil: 'commit' }),
    );
    await page.getByLabel('Code of the card').waitFor();
    expect(ms).toBeLessThan(WITHIN_MS);
  });

  it('says of another page that it cannot be reached', async () => {
    const page = await openCounter();
    network.setMode('silent');
    await page.goto(`${PUBLIC_URL}/counter/${store.accountId}/find`, { waitUntil: 'commit' });
    await page.getByText('That page cannot be reached right now.').waitFor();
    expect(page.url()).toBe(`${PUBLIC_URL}/counter/${store.accountId}`);
  });
});
