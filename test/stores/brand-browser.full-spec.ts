import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import sharp from 'sharp';
import type { AccountJson } from '#loyalty/accounts/account.dto.js';
import type { CardJson } from '#loyalty/cards/card.dto.js';
import { PassLinks } from '#web/web-card/pass-links.service.js';
import {
  FAKE_WAKE_LOCK,
  HELD_FETCH,
  listCovered,
  measureGap,
} from '../support/browser/card-screen.js';
import {
  expectAccessiblePage,
  keepPicture,
  keepShown,
  SIZES,
  startChromium,
} from '../support/browser/chromium.js';
import { pageErrors } from '../support/browser/page-errors.mjs';
import { newPoster } from '../support/browser/signup.js';
import { enrol, type Enrolled } from '../support/fixtures/enrolled-customer.js';
import { eventually } from '../support/jest/eventually.js';
import { startDispatcher } from '../support/services/webhook-dispatcher.js';
import type { Program } from '../support/services/program.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';

/** Tests in a real browser what a shop's brand looks like, and every state of its card. */

const PUBLIC_URL = 'http://cards.localhost';
const PASSWORD = 'correct horse';
const IPHONE =
  'Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1.15 Version/19.0 Mobile/15E148 Safari/604.1';
const NARROW = { width: 320, height: 640 };

const LOGO =
  '<svg xmlns="http://www.w3.org/2000/svg" width="520" height="200"><g fill="#7A2E1F"><circle cx="110" cy="100" r="70"/><path d="M230 60h240v26H230zM230 108h160v22H230z"/></g></svg>';

let service: LocalService;
let dispatcher: Program;
let store: Client & { email: string };
let browser: Browser;
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'inkpad-logo-'));
  service = await startService({ PUBLIC_URL });
  dispatcher = await startDispatcher(service);
  store = await service.newStore({ timeZone: 'Europe/Berlin', country: 'DE' });
  const links = service.app.get(PassLinks, { strict: false });
  Object.defineProperty(links, 'appleEnabled', { value: true });
  browser = await startChromium({ 'cards.localhost': service.baseUrl });
  await sharp(Buffer.from(LOGO)).png().toFile(join(folder, 'logo.png'));
});
afterAll(async () => {
  await browser?.close();
  await dispatcher?.kill('SIGTERM');
  await service?.stop();
  await rm(folder, { recursive: true });
});

/** @param scripts run before those of the page */
async function open(
  path: string,
  options: BrowserContextOptions = {},
  scripts: string[] = [],
): Promise<Page> {
  const context = await browser.newContext({ viewport: SIZES.phone, ...options });
  for (const content of scripts) await context.addInitScript({ content });
  const page = await context.newPage();
  await page.goto(PUBLIC_URL + path);
  return page;
}

const show = async () => (await store.get<AccountJson>(store.store)).body;

async function expectNarrow(page: Page): Promise<void> {
  await page.setViewportSize(NARROW);
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(NARROW.width);
  await page.setViewportSize(SIZES.phone);
}

describe('the page of the brand', () => {
  it('takes a logo, colours from it and contact details', async () => {
    pageErrors.expect(/status of 422/);
    const { body: card } = await store.post<CardJson>(`${store.store}/cards`, {
      card: { name: 'Coffee', strip_type: 'preset', strip_preset: 'coffee' },
    });
    const page = await open(`/app/stores/${store.accountId}/brand`);
    await page.getByLabel('E-mail').fill(store.email);
    await page.getByLabel('Password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await page.getByRole('heading', { name: 'Brand', level: 1 }).waitFor();
    await expectAccessiblePage(page, 'brand-empty');
    await writeFile(join(folder, 'no.png'), 'no picture');
    await page.getByLabel('Picture').setInputFiles(join(folder, 'no.png'));
    await page.getByRole('button', { name: 'Upload' }).click();
    await page.getByText('Please choose a PNG, JPEG or WebP picture.').last().waitFor();
    await expectAccessiblePage(page, 'brand-refused');
    await page.getByLabel('Picture').setInputFiles(join(folder, 'logo.png'));
    await page.getByRole('button', { name: 'Upload' }).click();
    await page.getByText('The logo is in use from now on.').waitFor();
    expect((await show()).logo_url).toMatch(/\/img\/store\/[0-9a-f]{64}\.png$/);
    await page.getByText('This is all that customers see of your picture.').waitFor();
    await page.getByLabel('The logo contains the name').check();
    await page.getByRole('button', { name: 'Apply' }).click();
    await page.getByText('Saved.').waitFor();
    expect((await show()).logo_contains_name).toBe(true);
    expect(await page.getByLabel('The logo contains the name').isChecked()).toBe(true);
    const cut = (await show()).logo_url;
    await page.getByLabel('Keep the margin').check();
    await page.getByLabel('Picture').setInputFiles(join(folder, 'logo.png'));
    await page.getByRole('button', { name: 'Replace the logo' }).click();
    await page.getByText('The logo is in use from now on.').waitFor();
    expect((await show()).logo_url).not.toBe(cut);
    await page.getByRole('radio', { name: 'Dark' }).check();
    await page.getByRole('button', { name: 'See them on the card' }).click();
    await page.getByRole('heading', { name: 'Use these colours?' }).waitFor();
    await page.getByRole('img', { name: 'With the new colours' }).waitFor();
    await expectAccessiblePage(page, 'brand-colors');
    await expectNarrow(page);
    await page.getByRole('button', { name: 'Use these colours' }).click();
    await page.getByText('The card “Coffee” has its new colours.').waitFor();
    const readCard = async () =>
      (await store.get<CardJson>(`${store.store}/cards/${card.id}`)).body;
    const { card_color, strip_color } = await readCard();
    expect([card_color !== card.card_color, strip_color]).toEqual([true, card_color]);
    await expectAccessiblePage(page, 'brand-colored');
    await page.getByRole('button', { name: 'Undo' }).click();
    await page.getByText('The card looks as it did before.').waitFor();
    const { updated_at: _at, ...former } = card;
    expect(await readCard()).toMatchObject(former);
    await page.getByLabel('Website').fill('cafe.example');
    await page.getByLabel('Phone').fill('call us');
    await page.getByLabel('Address').fill('Hafenstraße 1\n20095 Hamburg');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('This is not a phone number.').last().waitFor();
    expect(await page.getByLabel('Website').inputValue()).toBe('cafe.example');
    await expectAccessiblePage(page, 'brand-contact-refused');
    await page.getByLabel('Phone').fill('+49 40 123456');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Your contact details are saved.').waitFor();
    expect(await show()).toMatchObject({
      website: 'https://cafe.example/',
      phone: '+49 40 123456',
      address: 'Hafenstraße 1\n20095 Hamburg',
    });
    await expectAccessiblePage(page, 'brand');
    await expectNarrow(page);
    const html = await page.content();
    expect(Buffer.byteLength(html)).toBeLessThan(30_000);
    await page.getByRole('button', { name: 'Remove the logo' }).click();
    await page.getByText('The logo was removed.').waitFor();
    expect((await show()).logo_url).toBeNull();
    await page.context().close();
  });
});

type State = { name: string; prepare: (card: Enrolled) => Promise<void>; query?: string };

const redeem = async (client: Client, { path, card }: Enrolled) => {
  const { body } = await client.get<{ id: number }[]>(`${client.store}/rewards?card_id=${card.id}`);
  expect((await client.post(`${path}/redeem`, { reward_id: body[0]?.id })).status).toBe(200);
};

/** Languages with names that are long, in Arabic, or have an emoji. */
const SHOPS = [
  {
    locale: 'en',
    storeName: 'The Old Harbour Coffee Roasters and Bakery of Lower Puddlebury',
    customer: {
      first_name: 'Wilhelmina Alexandra Bartholomew',
      last_name: 'Featherstonehaugh-Cholmondeley',
    },
  },
  {
    locale: 'de',
    storeName: 'Café am Hafen ☕️',
    customer: { first_name: 'Jürgen', last_name: 'Weiß' },
  },
  {
    locale: 'fr',
    storeName: 'مقهى الميناء',
    customer: { first_name: 'عبد الرحمن', last_name: 'السيد' },
  },
  {
    locale: 'es',
    storeName: 'Panadería Ñandú',
    customer: { first_name: 'Zoë 🌸', last_name: null },
  },
] as const;

describe.each(SHOPS)('the card in $locale', ({ locale, storeName, customer }) => {
  let client: Client;

  beforeAll(async () => {
    client = await service.newStore({ timeZone: 'Europe/Berlin' });
    await client.send('PATCH', client.store, {
      account: {
        locale,
        store_name: storeName,
        website: 'https://www.cafe.example/menu',
        phone: '+49 40 123456',
        email: 'hello@cafe.example',
        address: 'Hafenstraße 1\n20095 Hamburg',
        terms_text: 'One stamp for each drink.',
      },
    });
    const logo = await sharp(Buffer.from(LOGO)).png().toBuffer();
    await client.send('PUT', `${client.store}/logo`, new Uint8Array(logo), {
      'content-type': 'image/png',
    });
  });

  const states: State[] = [
    { name: 'joined', query: '?joined=1', prepare: async () => undefined },
    { name: 'unsent', query: '?joined=unsent', prepare: async () => undefined },
    { name: 'collecting', prepare: ({ stamp }) => stamp(3) },
    { name: 'ready', prepare: ({ stamp }) => stamp(6) },
    {
      name: 'redeemed',
      prepare: async (card) => {
        await fetch(service.baseUrl + card.page);
        await card.stamp(6);
        await redeem(client, card);
        await eventually(
          async () => (await fetch(service.baseUrl + card.page)).text(),
          (text) => text.includes('id="redeemed"'),
        );
      },
    },
    { name: 'full', prepare: ({ stamp }) => stamp(10) },
    { name: 'surplus', prepare: ({ stamp }) => stamp(13) },
    {
      name: 'archived',
      prepare: async ({ stamp, card }) => {
        await stamp(6);
        await client.post(`${client.store}/cards/${card.id}/archive`);
      },
    },
    {
      name: 'expired',
      prepare: async ({ stamp, card }) => {
        await stamp(6);
        await client.send('PATCH', `${client.store}/cards/${card.id}`, {
          card: { expires_at: '2025-01-31T10:00:00Z' },
        });
      },
    },
    {
      name: 'erased',
      prepare: async ({ customer: { id } }) => {
        await client.post(`${client.store}/customers/${id}/erase`);
      },
    },
  ];

  it.each(states)(
    'can be used by everybody when it is $name',
    async ({ name, prepare, query = '' }) => {
      const card = await enrol(client, {
        card: {
          name: locale === 'en' ? 'The very long name of a coffee and cake loyalty card' : 'Kaffee',
          card_color: '#3E2723',
          text_color: '#FFF3E0',
          stamp_color: '#3E2723',
          stamp_background_color: '#FFE0B2',
          strip_type: 'preset',
          strip_preset: 'coffee',
          max_stamps_per_request: 20,
          auxiliary_fields: [{ label: 'Wi-Fi', value: 'latte-2026' }],
        },
        customer,
        rewards: [
          ['Espresso', 5],
          ['A whole cake of your choice with cream and candles', 10],
        ],
      });
      await prepare(card);
      if (name === 'erased') pageErrors.expect(/status of 404/);
      const page = await open(card.page + query, { userAgent: IPHONE, locale });
      await expectAccessiblePage(page, `card-${locale}-${name}`);
      await expectNarrow(page);
      expect(page.url()).not.toContain('joined');
      await page.context().close();
    },
  );

  it('is shown on the signup page', async () => {
    pageErrors.expect(/status of 422/);
    const poster = await newPoster(
      client,
      {
        primary_color: '#3E2723',
        text_color: '#FFFFFF',
        require_birthday: true,
        title: locale === 'fr' ? 'بطاقة ولاء القهوة' : 'Ten coffees, one cake 🍰',
      },
      { name: 'Coffee club', initial_stamps: 1, card_color: '#FFF3E0', text_color: '#3E2723' },
    );
    await client.post(`${client.store}/rewards`, {
      reward: { card_id: poster.card_id, name: 'Espresso', stamps_required: 5 },
    });
    const path = new URL(poster.signup_url).pathname;
    const page = await open(path, { locale });
    await expectAccessiblePage(page, `signup-${locale}`);
    await expectNarrow(page);
    await page.locator('[name=first_name]').fill('Ada');
    await page.locator('[name=email]').fill(`ada.${locale}@mail.example`);
    await page.locator('[name=birthday_day]').fill('31');
    await page.locator('[name=birthday_month]').fill('2');
    await page.locator('[name=birthday_year]').fill('1990');
    await page.locator('button[type=submit]').click();
    await page.locator('#field-birthday-error').waitFor();
    expect(await page.locator('[name=birthday_day]').inputValue()).toBe('31');
    await expectAccessiblePage(page, `signup-${locale}-refused`);
    await page.locator('[name=birthday_month]').fill('5');
    await page.locator('button[type=submit]').click();
    await page.waitForURL(/\/passes\//);
    // The same address from another phone gets a decoy, which must look like a new card (ADR-0051).
    const decoy = await open(path, { locale, userAgent: IPHONE });
    await decoy.locator('[name=first_name]').fill('Ada');
    await decoy.locator('[name=email]').fill(`ada.${locale}@mail.example`);
    for (const [part, number] of Object.entries({ day: '31', month: '5', year: '1990' })) {
      await decoy.locator(`[name=birthday_${part}]`).fill(number);
    }
    await decoy.locator('button[type=submit]').click();
    await decoy.waitForURL(/\/passes\//);
    await expectAccessiblePage(decoy, `card-${locale}-decoy`);
    await expectNarrow(decoy);
    const readCard = (page: Page) => page.locator('#joined, .count').allTextContents();
    expect(await readCard(decoy)).toEqual(await readCard(page));
    await decoy.context().close();
    await page.goto(PUBLIC_URL + path);
    await page.locator('a[href*="/passes/"]').waitFor();
    await expectAccessiblePage(page, `signup-${locale}-already`);
    await page.locator('a[href*="/passes/"]').click();
    await page.locator('#card').waitFor();
    await page.context().close();
  });
});

describe('the page of a card', () => {
  const openCard = async (query = '', { scripts = [] as string[] } = {}) => {
    const card = await enrol(store, {
      card: { strip_type: 'preset', strip_preset: 'coffee' },
      rewards: [['Espresso', 5]],
    });
    const path = card.page + query;
    return { card, page: await open(path, { userAgent: IPHONE }, scripts) };
  };

  const waitUntilListening = (page: Page) =>
    eventually(
      () => page.evaluate<boolean>('source?.readyState === EventSource.OPEN'),
      (isOpen) => isOpen,
    );

  it('shows the code as large as the screen, and closes it again', async () => {
    const { page } = await openCard();
    const small = await page.locator('#enlarge .qr').boundingBox();
    await page.locator('#enlarge').click();
    const dialog = page.locator('dialog');
    await dialog.waitFor();
    const large = await dialog.locator('.qr').boundingBox();
    // All of the screen but a margin of 16 px on both sides.
    expect(large?.width).toBe((page.viewportSize()?.width ?? 0) - 32);
    expect(large?.width ?? 0).toBeGreaterThan(small?.width ?? 0);
    await keepPicture(page, 'card-large-code');
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    await page.locator('#enlarge').press('Enter');
    await dialog.getByRole('button', { name: 'Close' }).click();
    await dialog.waitFor({ state: 'detached' });
    await page.context().close();
  });

  it('shows a Code 128 where the scanner of a shop reads lines only', async () => {
    const card = await enrol(store, { card: { barcode_format: 'code128' } });
    const page = await open(card.page, { userAgent: IPHONE });
    await page.getByRole('img', { name: /^Barcode of the card/ }).waitFor();
    const bars = await page.locator('.bars').boundingBox();
    expect(bars?.width).toBe(286);
    await expectAccessiblePage(page, 'card-code128');
    await page.locator('#enlarge').click();
    await page.locator('dialog .bars').waitFor();
    await keepPicture(page, 'card-code128-large');
    await page.setViewportSize(NARROW);
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(NARROW.width);
    await page.context().close();
  });

  it('never shows an empty picture while it is updated', async () => {
    const { card, page } = await openCard();
    // After three seconds the page shows the stamp without its picture, which a busy machine may not have drawn by then.
    await page.evaluate(keepShown(3_000));
    // What was seen of the picture, at every frame.
    await page.evaluate(`window.blank = 0; window.frames_ = 0; (function look() {
      const image = document.querySelector('.strip');
      window.frames_ += 1;
      if (!image || !image.complete || image.naturalWidth === 0) window.blank += 1;
      requestAnimationFrame(look);
    })()`);
    await page.route('**/img/strip/**', async (route) => {
      await new Promise((resolve) => setTimeout(resolve, 400));
      await route.continue();
    });
    await card.stamp(2);
    await eventually(
      () => page.locator('.count strong').textContent(),
      (text) => text === '2 / 10',
    );
    expect(await page.evaluate('[window.blank, window.frames_ > 5]')).toEqual([0, true]);
    // A request that waits there would fail with the page.
    await page.unrouteAll({ behavior: 'wait' });
    await page.context().close();
  });

  it('keeps the button of the wallet in view until it was used or refused', async () => {
    const { card, page } = await openCard();
    // What the bars of a browser leave of a phone.
    await page.setViewportSize({ width: 390, height: 660 });
    const bar = page.locator('#stay');
    await bar.getByText('Add to Apple Wallet').waitFor();
    expect(await measureGap(page, '#stay')).toBe(0);
    // The page's own button comes into view at the end, and the bar goes.
    await page.evaluate('scrollTo(0, 1e6)');
    await bar.waitFor({ state: 'hidden' });
    await page.evaluate('scrollTo(0, 0)');
    await bar.waitFor();
    await keepPicture(page, 'card-bar');
    await bar.getByText('Not now').click();
    await bar.waitFor({ state: 'hidden' });
    await page.reload();
    await page.locator('#enlarge .qr').waitFor();
    expect(await bar.isVisible()).toBe(false);
    // Another card of the same phone was not refused.
    const otherHolder = await enrol(store);
    await page.goto(PUBLIC_URL + otherHolder.page);
    await bar.waitFor();
    await page.route('**/apple', (route) => route.fulfill({ status: 204 }));
    await bar.getByText('Add to Apple Wallet').click();
    await bar.waitFor({ state: 'hidden' });
    await page.goto(`${PUBLIC_URL}${card.page}?joined=1`);
    await page.locator('#joined .wallet').waitFor();
    await page.context().close();
  });

  it('covers nothing with its note when there is no connection', async () => {
    // The latter is what a service worker gives.
    pageErrors.allow(/ERR_(INTERNET_DISCONNECTED|FAILED)/);
    const { page } = await openCard();
    await page.evaluate('navigator.serviceWorker.ready');
    // Where the reader is in the middle of the page, nothing moves.
    for (const top of [0, 120]) {
      await page.evaluate(`scrollTo(0, ${top})`);
      await page.context().setOffline(true);
      await page.locator('#offline').waitFor();
      expect(await listCovered(page, '#offline')).toEqual([]);
      await keepPicture(page, `card-offline-${top}`);
      await page.context().setOffline(false);
      await page.locator('#offline').waitFor({ state: 'hidden' });
    }
    await page.context().close();
  });

  it('closes its stream when the connection is lost, and catches up when it is back', async () => {
    const { card, page } = await openCard();
    await waitUntilListening(page);
    // At once: after 15 seconds the page looks whether the connection is back.
    const isClosed = `dispatchEvent(new Event('offline')); source.readyState === EventSource.CLOSED`;
    expect(await page.evaluate(`${isClosed} && !document.getElementById('offline').hidden`)).toBe(
      true,
    );
    await card.stamp(2);
    await page.evaluate(`dispatchEvent(new Event('online'))`);
    await page.locator('#offline').waitFor({ state: 'hidden' });
    expect(await page.locator('.count strong').textContent()).toBe('2 / 10');
    await page.context().close();
  });

  it('keeps its note when a page that was on its way arrives', async () => {
    const { card, page } = await openCard('', { scripts: [HELD_FETCH] });
    await waitUntilListening(page);
    await card.stamp(2);
    await eventually(
      () => page.evaluate<number>('window.heldCount'),
      (heldCount) => heldCount > 0,
    );
    const isNoteShown = await page.evaluate(`new Promise((resolve) => {
      const look = () => {
        if (document.querySelector('.count strong').textContent === '2 / 10')
          resolve(!document.getElementById('offline').hidden);
      };
      new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
      dispatchEvent(new Event('offline'));
      window.release();
    })`);
    expect(isNoteShown).toBe(true);
    await page.context().close();
  });

  it('keeps the screen on while the code is large, also after another app was in front', async () => {
    const { page } = await openCard('', { scripts: [FAKE_WAKE_LOCK] });
    const readLocks = () => page.evaluate<number>('window.locks.heldCount');
    expect(await readLocks()).toBe(0);
    await page.locator('#enlarge').click();
    await eventually(readLocks, (lockCount) => lockCount === 1);
    // Browsers release the lock of a page that is hidden.
    await page.evaluate('window.locks.hide()');
    expect(await readLocks()).toBe(0);
    await page.evaluate('window.locks.show()');
    await eventually(readLocks, (lockCount) => lockCount === 1);
    await page.keyboard.press('Escape');
    await eventually(readLocks, (lockCount) => lockCount === 0);
    // Closed before the browser has given the lock.
    await page.evaluate('window.locks.delayMs = 300');
    await page.locator('#enlarge').click();
    await page.locator('dialog').waitFor();
    await page.keyboard.press('Escape');
    await eventually(
      () => page.evaluate<number>('window.locks.count'),
      (count) => count === 3,
    );
    await eventually(readLocks, (lockCount) => lockCount === 0);
    await page.context().close();
  });
});
