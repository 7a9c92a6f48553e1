import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { chromium, type BrowserContext, type Page } from 'playwright-core';
import sharp from 'sharp';
import {
  expectAccessiblePage,
  SIZES,
  startChromium,
  WITHIN_MS,
} from '../support/browser/chromium.js';
import { pageErrors } from '../support/browser/page-errors.mjs';
import { eventually } from '../support/jest/eventually.js';
import type { Program } from '../support/services/program.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';
import { enrol, type Enrolled } from '../support/fixtures/enrolled-customer.js';
import { measureFirstPaint, printTime, startWireBytes } from '../support/browser/wire-bytes.js';
import { PHOTOGRAPHS } from '../support/fixtures/pictures.js';
import { startDispatcher } from '../support/services/webhook-dispatcher.js';

/** Tests the web card in a real browser: Debian's Chromium, or the one at CHROMIUM_PATH. */

const ARGUMENTS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];
/** SCREENSHOTS is a folder for pictures of the pages. */
const { CHROMIUM_PATH = '/usr/bin/chromium', SCREENSHOTS } = process.env;

let service: LocalService;
let store: Client;
let dispatcher: Program;
let browser: BrowserContext;
let folder: string;
let card: Enrolled;
const LOGO =
  '<svg xmlns="http://www.w3.org/2000/svg" width="520" height="200"><g fill="#7A2E1F"><circle cx="110" cy="100" r="70"/><path d="M230 60h240v26H230zM230 108h160v22H230z"/></g></svg>';

beforeAll(async () => {
  service = await startService();
  store = await service.newStore();
  dispatcher = await startDispatcher(service);
  folder = await mkdtemp(join(tmpdir(), 'inkpad-chromium-'));
  browser = await chromium.launchPersistentContext(folder, {
    executablePath: CHROMIUM_PATH,
    args: ARGUMENTS,
    viewport: SIZES.phone,
    permissions: ['notifications'],
  });
  browser.setDefaultTimeout(WITHIN_MS);
  pageErrors.watch(browser);
  card = await enrol(store, {
    card: {
      name: 'Coffee club',
      card_color: '#5B3A29',
      text_color: '#FFF3E0',
      stamp_color: '#5B3A29',
      stamp_background_color: '#FFE0B2',
      strip_type: 'preset',
      strip_preset: 'coffee',
      auxiliary_fields: [{ label: 'Branch', value: 'Harbour Street' }],
      expires_at: '2199-12-31T22:00:00Z',
    },
    customer: { first_name: 'Grace', last_name: 'Hopper' },
    rewards: [
      ['A cookie of your choice', 3],
      ['Free coffee', 10],
    ],
  });
  await card.stamp(4);
});
afterAll(async () => {
  await browser?.close();
  await dispatcher?.kill('SIGTERM');
  await service?.stop();
  await rm(folder, { recursive: true, force: true });
});

async function open(path = card.page): Promise<Page> {
  const page = await browser.newPage();
  await page.goto(service.baseUrl + path);
  return page;
}

/** Waits until the page is cached on the device. */
async function waitUntilCached(page: Page): Promise<void> {
  await eventually(
    () =>
      page.evaluate<string>(
        `caches.match(location.origin + location.pathname).then((response) => response ? response.text() : '')`,
      ),
    (text) => text.includes('id="card"'),
  );
}

/** Loads the page in a browser that has never seen it, and waits until the page is cached for times without a connection. */
async function expectLight({ page: path }: Enrolled, kind: string, deviceScaleFactor: number) {
  const wire = await startWireBytes(service.baseUrl);
  const fresh = await startChromium();
  try {
    const options = { viewport: SIZES.phone, deviceScaleFactor };
    const page = await (await fresh.newContext(options)).newPage();
    await page.goto(wire.baseUrl + path);
    await eventually(
      () =>
        page.evaluate<number>(
          'caches.keys().then(async ([name]) => name ? (await (await caches.open(name)).keys()).length : 0)',
        ),
      (count) => count > 3,
    );
    await page.waitForLoadState('load');
    const bytes = wire.countReceived();
    expect(bytes).toBeGreaterThan(20_000);
    expect([kind, deviceScaleFactor, bytes < 120_000, bytes]).toEqual([
      kind,
      deviceScaleFactor,
      true,
      bytes,
    ]);
    const otherPage = await (await fresh.newContext(options)).newPage();
    printTime(
      `card with ${kind}, ${deviceScaleFactor}x`,
      bytes,
      await measureFirstPaint(otherPage, wire.baseUrl + path),
    );
  } finally {
    await fresh.close();
    await wire.close();
  }
}

const readBalance = (page: Page) => page.locator('.count strong').textContent();

describe('the web card in a browser', () => {
  it('shows and announces a new balance by itself when the card is stamped', async () => {
    const page = await open();
    expect(await readBalance(page)).toBe('4 / 10');
    await card.stamp(2);
    await eventually(
      () => readBalance(page),
      (text) => text === '6 / 10',
    );
    expect(await page.locator('#announcement').textContent()).toBe('6 of 10 stamps');
    expect(await page.locator('#offline').isVisible()).toBe(false);
    await page.close();
  });

  it('follows a card whose tag is lower after a restored backup', async () => {
    const ownCard = await enrol(store);
    const page = await browser.newPage();
    await page.route(
      service.baseUrl + ownCard.page,
      async (route) => {
        const response = await route.fetch();
        const body = (await response.text()).replace(/data-tag="\d+"/, 'data-tag="999999"');
        await route.fulfill({ response, body });
      },
      { times: 1 },
    );
    await page.goto(service.baseUrl + ownCard.page);
    await eventually(
      () => page.locator('#card').getAttribute('data-tag'),
      (tag) => tag !== '999999',
    );
    await ownCard.stamp(2);
    await eventually(
      () => readBalance(page),
      (text) => text === '2 / 10',
    );
    await page.close();
  });

  it('reloads itself to show a new colour of the card', async () => {
    const page = await open();
    await store.send('PATCH', `${store.store}/cards/${card.card.id}`, {
      card: { card_color: '#4E342E' },
    });
    const readBackground = () =>
      page
        .evaluate<string>(`getComputedStyle(document.querySelector('.card')).backgroundColor`)
        // There is no element while the page loads.
        .catch(() => 'loading');
    await eventually(readBackground, (color) => color === 'rgb(78, 52, 46)');
    await page.close();
  });

  it('has its content in order for screen readers', async () => {
    const page = await open();
    const read = await page.locator('main').ariaSnapshot();
    const order = [
      'article "Coffee club"',
      'heading "Coffee club" [level=1]',
      'Grace Hopper',
      'img "QR code of the card',
      'heading "Rewards" [level=2]',
      'heading "A cookie of your choice 3 stamps" [level=3]',
      'Ready to redeem',
      'progressbar "Free coffee"',
    ].map((text) => [text, read.indexOf(text)]);
    expect(order.filter(([, at]) => Number(at) < 0)).toEqual([]);
    expect(order.map(([, at]) => at)).toEqual(
      order.map(([, at]) => Number(at)).sort((a, b) => a - b),
    );
    await page.close();
  });

  it('is accessible on every screen size, also when it has expired or is archived', async () => {
    const expiredCard = await enrol(store, { rewards: [['Tea', 3]] });
    await expiredCard.stamp(4);
    const past = { card: { expires_at: '2025-01-31T10:00:00Z' } };
    await store.send('PATCH', `${store.store}/cards/${expiredCard.card.id}`, past);
    const archivedCard = await enrol(store, { rewards: [['Tea', 3]] });
    await archivedCard.stamp(4);
    await store.post(`${store.store}/cards/${archivedCard.card.id}/archive`);
    for (const [name, path] of Object.entries({
      card: card.page,
      expired: expiredCard.page,
      archived: archivedCard.page,
    })) {
      const page = await open(path);
      await expectAccessiblePage(page, name);
      await page.close();
    }
  });

  it('prints on one page', async () => {
    const page = await open();
    const pdf = await page.pdf({ format: 'A4', printBackground: false });
    expect(pdf.toString('latin1').match(/\/Type \/Page\b/g)).toHaveLength(1);
    if (SCREENSHOTS !== undefined) {
      await page.emulateMedia({ media: 'print' });
      await page.screenshot({ path: join(SCREENSHOTS, 'print.png'), fullPage: true });
    }
    await page.close();
  });

  it('shows a push message as a notification', async () => {
    const page = await open();
    await waitUntilCached(page);
    const worker = browser
      .serviceWorkers()
      .find((candidate) => candidate.url().includes(card.page));
    if (!worker) throw new Error('the page has no worker');
    // A headless browser cannot show a notification.
    await worker.evaluate(
      'registration.showNotification = async (...args) => { globalThis.notification = args; }',
    );
    const session = await browser.newCDPSession(page);
    const registrationId = new Promise<string>((resolve) => {
      session.on('ServiceWorker.workerRegistrationUpdated', ({ registrations }) => {
        const registration = registrations.find(({ scopeURL }) => scopeURL.endsWith(card.page));
        if (registration) resolve(registration.registrationId);
      });
    });
    await session.send('ServiceWorker.enable');
    const options = { body: '9 more stamps.', lang: 'en', tag: card.page };
    const message = {
      web_push: 8030,
      notification: { title: 'Corner Café', navigate: card.page, ...options },
    };
    await session.send('ServiceWorker.deliverPushMessage', {
      origin: service.baseUrl,
      registrationId: await registrationId,
      data: JSON.stringify(message),
    });
    const notification = await eventually(
      () => worker.evaluate<[string, object] | null>('globalThis.notification ?? null'),
      (value) => value !== null,
    );
    expect(notification).toMatchObject(['Corner Café', { ...options, data: { url: card.page } }]);
    await page.close();
  });

  it('shows its balance and QR code and no button without JavaScript', async () => {
    const plain = await startChromium();
    try {
      const page = await plain.newPage({ javaScriptEnabled: false, viewport: SIZES.phone });
      await page.goto(service.baseUrl + card.page);
      expect(await readBalance(page)).toBe('6 / 10');
      expect(await page.locator('svg.qr').isVisible()).toBe(true);
      expect(await page.locator('button').filter({ visible: true }).count()).toBe(0);
    } finally {
      await plain.close();
    }
  });

  it('takes less than 120 KB in all with a picture and a logo', async () => {
    const shop = await service.newStore();
    const headers = { 'content-type': 'image/png' };
    const logo = await sharp(Buffer.from(LOGO)).png().toBuffer();
    await shop.send('PUT', `${shop.store}/logo`, new Uint8Array(logo), headers);
    for (const [kind, paint] of Object.entries(PHOTOGRAPHS)) {
      const card = await enrol(shop, { rewards: [['Espresso', 5]] });
      const picture = await (await paint(1125, 432)).png().toBuffer();
      const at = `${shop.store}/cards/${card.card.id}/strip_image`;
      expect((await shop.send('PUT', at, new Uint8Array(picture), headers)).status).toBe(200);
      await card.stamp(3);
      for (const deviceScaleFactor of [2, 3]) await expectLight(card, kind, deviceScaleFactor);
    }
  });

  it('shows its last state and the time of it when it is offline', async () => {
    // The page asks while the service stops, too.
    pageErrors.allow(/ERR_CONNECTION_REFUSED|ERR_FAILED|status of 503/);
    const page = await open();
    await waitUntilCached(page);
    await service.app.close();
    await page.reload();
    expect(await readBalance(page)).toBe('6 / 10');
    await page.locator('#offline').waitFor({ state: 'visible' });
    expect(await page.locator('#offline').textContent()).toMatch(
      /^No connection\. This is your card as of \w+/,
    );
    if (SCREENSHOTS !== undefined) {
      await page.screenshot({ path: join(SCREENSHOTS, 'offline.png'), fullPage: true });
    }
    await page.close();
  });
});
