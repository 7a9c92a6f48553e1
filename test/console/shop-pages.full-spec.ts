import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import sharp from 'sharp';
import type { CardJson } from '#loyalty/cards/card.dto.js';
import type { LocationJson } from '#loyalty/locations/location.dto.js';
import type { PosterJson } from '#loyalty/posters/poster.dto.js';
import type { RewardJson } from '#loyalty/rewards/reward.dto.js';
import {
  expectAccessiblePage,
  keepPicture,
  keepShown,
  SIZES,
  startChromium,
} from '../support/browser/chromium.js';
import { eventually } from '../support/jest/eventually.js';
import { pageErrors } from '../support/browser/page-errors.mjs';
import { quarters } from '../support/fixtures/pictures.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';

/** Tests the pages of cards, posters and locations in a real browser. */

const PUBLIC_URL = 'http://cards.localhost';
const LONG = 'Kaffeerösterei am Übersee-Boulevard mit angeschlossener Backstube';
const ARABIC = 'بطاقة القهوة المحمصة';

let service: LocalService;
let store: Client & { email: string };
let browser: Browser;
let context: BrowserContext;

beforeAll(async () => {
  service = await startService({ PUBLIC_URL });
  store = await service.newStore({ timeZone: 'Europe/Berlin' });
  browser = await startChromium({ 'cards.localhost': service.baseUrl });
  context = await browser.newContext({ viewport: SIZES.phone });
  await signIn(context, true);
});
afterAll(async () => {
  await browser?.close();
  await service?.stop();
});

const at = (path: string) => `${PUBLIC_URL}/app/stores/${store.accountId}/${path}`;
const press = (page: Page, name: string | RegExp) =>
  page.getByRole('button', { name, exact: true }).click();
const readCards = async () => (await store.get<CardJson[]>(`${store.store}/cards`)).body;
const findCard = async (name: string) => (await readCards()).find((card) => card.name === name);

async function signIn(into: BrowserContext, closes: boolean): Promise<Page> {
  const page = await into.newPage();
  await page.goto(`${PUBLIC_URL}/app/sign-in`);
  await page.getByLabel('E-mail').fill(store.email);
  await page.getByLabel('Password').fill('correct horse');
  await press(page, 'Sign in');
  if (closes) await page.close();
  return page;
}

async function open(path: string): Promise<Page> {
  const page = await context.newPage();
  await page.goto(at(path));
  return page;
}

/** Expects a page to fit a narrow phone, and its keyboard to reach a control by its name. */
async function expectNarrowPage(page: Page): Promise<void> {
  await page.setViewportSize({ width: 320, height: 640 });
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(320);
  await page.setViewportSize(SIZES.phone);
}

async function createCard(card: object, rewards: object[] = []): Promise<CardJson> {
  const { body } = await store.post<CardJson>(`${store.store}/cards`, { card });
  for (const reward of rewards) {
    await store.post(`${store.store}/rewards`, { reward: { card_id: body.id, ...reward } });
  }
  return body;
}

describe('the designer of cards', () => {
  it('makes a card from a template in three taps, with previews that follow the form', async () => {
    const page = await open('cards');
    await expectAccessiblePage(page, 'cards-empty');
    await page.getByRole('link', { name: 'New card' }).click();
    await expectAccessiblePage(page, 'card-templates');
    await expectNarrowPage(page);
    await page.getByRole('link', { name: /Café/ }).click();
    await expectAccessiblePage(page, 'card-new');
    await expectNarrowPage(page);
    await page.getByLabel('Name of the card').fill('Espresso club');
    await page.locator('#fronts').getByText('Espresso club').first().waitFor();
    await press(page, 'Create the card');
    await page.getByText('The card is ready.').waitFor();
    const card = await findCard('Espresso club');
    expect(card).toMatchObject({ stamp_icon: 'coffee', strip_preset: 'coffee', rewards_count: 1 });
    await page.close();
  });

  const tapStamp = (page: Page, stamp: number) =>
    page
      .getByRole('list', { name: 'Tap a stamp to add a reward there.' })
      .getByRole('link', { name: `${stamp}`, exact: true })
      .click();

  it('adds a reward at a point of the way in two taps', async () => {
    const { id } = await createCard({ name: 'Points' });
    const page = await open(`cards/${id}`);
    await tapStamp(page, 5);
    await page.keyboard.type('Free espresso');
    await page.locator('.costs').getByText('uses 5 stamps').waitFor();
    await press(page, 'Add a reward');
    await page.keyboard.type('Free breakfast');
    await page.getByLabel('Stamps needed').last().fill('10');
    await press(page, 'Save');
    await page.getByText('The card “Points” is saved.').waitFor();
    const { body } = await store.get<RewardJson[]>(`${store.store}/rewards?card_id=${id}`);
    expect(body.map(({ name, stamps_required }) => [name, stamps_required])).toEqual([
      ['Free espresso', 5],
      ['Free breakfast', 10],
    ]);
    await page.close();
  });

  it('keeps a preview in view on a phone, and ends a warning beside the colours', async () => {
    const page = await open('cards/new?template=coffee');
    await page.getByLabel('Text', { exact: true }).fill('#4e342e');
    const note = page.locator('#warning-text_hard_to_read');
    await note.waitFor();
    const box = await page.locator('.fronts').boundingBox();
    expect([box?.y, box?.height]).toEqual([0, 180]);
    await expectAccessiblePage(page, 'card-hard-to-read');
    await expectNarrowPage(page);
    await note.getByRole('button', { name: 'Fix it' }).click();
    await note.waitFor({ state: 'hidden' });
    expect(await page.getByLabel('Text', { exact: true }).inputValue()).toBe('#ffffff');
    await page.close({ runBeforeUnload: false });
  });

  it('asks before it changes the cards of customers, and before it loses work', async () => {
    const card = await createCard({ name: 'Held' }, [{ name: 'Tea', stamps_required: 10 }]);
    const customer = { first_name: 'Ada', email: 'held@example.com' };
    await store.post(`${store.store}/customers`, { customer, card_id: card.id });
    const page = await open(`cards/${card.id}`);
    await page.getByLabel('Name of the card').fill('Held by one');
    const leaving: string[] = [];
    page.on('dialog', (dialog) => {
      leaving.push(dialog.type());
      void dialog.dismiss();
    });
    const link = page.locator('.breadcrumb').getByRole('link');
    await link.click({ noWaitAfter: true });
    await eventually(
      () => leaving,
      ({ length }) => length === 1,
    );
    expect(leaving).toEqual(['beforeunload']);
    await press(page, 'Save');
    await page.getByText('1 customer has this card.').waitFor();
    await expectAccessiblePage(page, 'card-sure');
    expect(await page.locator('#sure-warnings').isVisible()).toBe(false);
    await press(page, 'Keep editing');
    expect(await findCard('Held by one')).toBeUndefined();
    await page.getByLabel('Text', { exact: true }).fill(card.card_color.toLowerCase());
    const warning = page.locator('#warning-text_hard_to_read');
    await warning.waitFor();
    await press(page, 'Save');
    const repeated = await page.locator('#sure-warnings').textContent();
    expect(repeated).toBe(await warning.locator('p').textContent());
    await press(page, 'Keep editing');
    await warning.getByRole('button', { name: 'Fix it' }).click();
    await warning.waitFor({ state: 'hidden' });
    await press(page, 'Save');
    await page.locator('#sure').getByRole('button', { name: 'Save' }).click();
    await page.getByText('The card “Held by one” is saved.').waitFor();
    expect(await findCard('Held by one')).toBeDefined();
    expect(leaving).toHaveLength(1);
    await page.close();
  });

  it('asks about a reward for which one card is not enough', async () => {
    const page = await open('cards/new?template=coffee');
    await page.getByLabel('Stamps needed').first().fill('12');
    await page.locator('.costs').getByText('beyond a full card').waitFor();
    const meant = page.getByLabel('Yes, customers need more than one full card').first();
    await press(page, 'Create the card');
    expect(await meant.evaluate((box) => box.matches(':invalid'))).toBe(true);
    await expectAccessiblePage(page, 'card-beyond');
    await meant.check();
    await press(page, 'Create the card');
    await page.getByText('The card is ready.').waitFor();
    await page.close();
  });

  it('cuts a large picture to the part that is shown, and uploads it', async () => {
    const { id } = await createCard({ name: 'Picture' });
    const page = await open(`cards/${id}`);
    await page.getByLabel('Your own picture').check();
    const buffer = await quarters(1200, 900).png({ compressionLevel: 0 }).toBuffer();
    expect(buffer.length).toBeGreaterThan(2 * 1024 * 1024);
    await page
      .getByLabel('Picture', { exact: true })
      .setInputFiles({ name: 'photo.png', mimeType: 'image/png', buffer });
    await page.locator('#crop').waitFor();
    await page.getByLabel('Up and down').fill('100');
    // The previews show it before it is uploaded, below their stamps.
    const chosen = page.locator('#chosen image');
    await eventually(
      () => chosen.getAttribute('href'),
      (href) => href?.startsWith('blob:') === true,
    );
    await keepPicture(page, 'card-crop');
    await page.getByLabel('Behind the stamp', { exact: true }).fill('#ffffff');
    const white = await sharp({
      create: { width: 600, height: 300, channels: 3, background: '#fffaf0' },
    })
      .png()
      .toBuffer();
    const upload = (name: string, content: Buffer) =>
      page
        .getByLabel('Picture', { exact: true })
        .setInputFiles({ name, mimeType: 'image/png', buffer: content });
    await upload('white.png', white);
    await page.getByText('The stamps are hard to see on this picture.').waitFor();
    await expectAccessiblePage(page, 'card-picture-hard');
    await upload('photo.png', buffer);
    // At once: the photo is larger than a form may be, and its part is not cut out yet.
    await page.getByRole('button', { name: 'Save', exact: true }).dispatchEvent('click');
    await page.getByText(/^The card “[^”]+” is saved\./).waitFor();
    const [strip] = await page
      .locator('#fronts defs image')
      .evaluateAll((images) => images.map((image) => image.getAttribute('href')));
    expect(strip).toContain('~i-');
    await page.close();
  });

  it('shows what is wrong on top, with links to the fields', async () => {
    pageErrors.expect(/status of 422/);
    const page = await open('cards/new?template=spa');
    await page.getByLabel('Name of the card').fill(' ');
    await page.getByText('Limits and expiry').click();
    await page.getByLabel('Maximum stamps a day per customer').fill('0');
    await page.locator('#design').evaluate((form) => form.setAttribute('novalidate', ''));
    await press(page, 'Create the card');
    const errors = page.getByRole('alert');
    await errors.waitFor();
    expect(await page.evaluate('document.activeElement.getAttribute("role")')).toBe('alert');
    await expectAccessiblePage(page, 'card-errors');
    await page.getByRole('link', { name: 'Name of the card: Please fill in this field.' }).click();
    expect(new URL(page.url()).hash).toBe('#field-name');
    await page.close();
  });

  it('is accessible with long and foreign names, and says how many cards a change affects', async () => {
    await store.send('PATCH', store.store, { account: { store_name: LONG } });
    const card = await createCard(
      {
        name: `${ARABIC} 🥐`,
        header_text: LONG,
        stamps_required: 21,
        strip_type: 'preset',
        strip_preset: 'bakery',
        card_color: '#FFF1DC',
        text_color: '#4A2B12',
        stamp_color: '#4A2B12',
        stamp_background_color: '#FFFFFF',
        stamp_icon: 'croissant',
        auxiliary_fields: [{ label: 'Öffnungszeiten der Filiale', value: 'Montag bis Samstag' }],
      },
      [
        { name: LONG, stamps_required: 7 },
        { name: '🎁 Überraschung', stamps_required: 21 },
      ],
    );
    for (const index of [1, 2, 3]) {
      const customer = { first_name: 'Ada', email: `ada${index}@example.com` };
      await store.post(`${store.store}/customers`, { customer, card_id: card.id });
    }
    const page = await open(`cards/${card.id}`);
    await page.getByText('This changes 3 cards.').waitFor();
    await expectAccessiblePage(page, 'card-long');
    await expectNarrowPage(page);
    await page.getByText('Full', { exact: true }).click();
    await keepPicture(page, 'card-long-full');
    await page.getByText('Messages and barcode').click();
    await page.getByLabel('After a stamp').fill('{missing} more to your free croissant 🥐');
    await page.getByLabel('Barcode', { exact: true }).selectOption('code128');
    await page.locator('#messages').scrollIntoViewIfNeeded();
    await expectAccessiblePage(page, 'card-messages');
    await expectNarrowPage(page);
    await page.goto(at('cards'));
    await expectAccessiblePage(page, 'cards');
    await expectNarrowPage(page);
    const { body } = await store.send<CardJson>('PATCH', `${store.store}/cards/${card.id}`, {
      card: { text_color: '#FFF1DC', stamp_color: '#FFFFFF', strip_type: 'color' },
    });
    expect(body.warnings).toHaveLength(3);
    await page.goto(at(`cards/${card.id}`));
    await page.getByText('The text is hard to read').last().waitFor();
    await expectAccessiblePage(page, 'card-contrast');
    await page.close();
  });

  it('leads to a preview for a phone without a session', async () => {
    pageErrors.expect(/status of 410/);
    const card = await createCard({ name: 'On the phone' }, [{ name: 'Tea', stamps_required: 5 }]);
    const page = await open(`cards/${card.id}`);
    const [preview] = await Promise.all([
      page.context().waitForEvent('page'),
      page.getByRole('link', { name: 'Open the preview' }).click(),
    ]);
    const stranger = await browser.newContext({ viewport: SIZES.phone });
    const phone = await stranger.newPage();
    await phone.goto(preview.url());
    await phone.getByText('This is a preview.').waitFor();
    await expectAccessiblePage(phone, 'card-preview');
    await phone.goto(`${PUBLIC_URL}/card-previews/over`);
    await expectAccessiblePage(phone, 'card-preview-ended');
    await stranger.close();
    await page.close();
  });

  it('works without scripts', async () => {
    const plain = await browser.newContext({ viewport: SIZES.phone, javaScriptEnabled: false });
    const page = await signIn(plain, false);
    await page.goto(at('cards/new?template=books'));
    await page.getByLabel('Name of the card').fill('Readers');
    await tapStamp(page, 5);
    await page.getByLabel('Reward', { exact: true }).last().fill('A bookmark');
    await page.getByLabel('Stamps needed').last().fill('5');
    await press(page, 'Update the preview');
    await page.locator('.costs').getByText('uses 5 stamps').waitFor();
    await press(page, 'Create the card');
    await page.getByText('The card is ready.').waitFor();
    expect(await findCard('Readers')).toMatchObject({ rewards_count: 2 });
    await page.getByRole('link', { name: 'Archive' }).click();
    await press(page, 'Archive it');
    await page.getByText('The card is archived.').waitFor();
    expect(await findCard('Readers')).toBeUndefined();
    await plain.close();
  });
});

describe('the pages of posters', () => {
  it('make a poster in three taps, and pause it', async () => {
    const page = await open('posters');
    await expectAccessiblePage(page, 'posters-empty');
    await page.getByRole('link', { name: 'Make a poster' }).click();
    await expectAccessiblePage(page, 'poster-new');
    await expectNarrowPage(page);
    const picture = page.locator('#poster-picture');
    const address = await picture.getAttribute('src');
    await page.getByLabel('Headline').fill('Collect stamps, get a coffee');
    await eventually(
      () => picture.getAttribute('src'),
      (src) => src !== address && src?.includes('get+a+coffee') === true,
    );
    await press(page, 'Make the poster');
    await page.getByText('The poster is ready to print.').waitFor();
    const { body } = await store.get<PosterJson[]>(`${store.store}/posters`);
    expect(body).toMatchObject([{ title: 'Collect stamps, get a coffee', active: true }]);
    await expectAccessiblePage(page, 'poster');
    await expectNarrowPage(page);
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.evaluate(keepShown(3_000));
    await press(page, 'Copy link');
    await page.getByRole('button', { name: 'Copied' }).waitFor();
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(body[0]?.signup_url);
    await press(page, 'Pause sign-ups');
    await page.getByText('Sign-ups are paused.').waitFor();
    await page.close();
  });

  it('are accessible, in every size and with long names', async () => {
    const [card] = await readCards();
    for (const [paper_size, title] of [
      ['a3', LONG],
      ['table_tent', `${ARABIC} 🥐`],
      ['sticker', 'Collect stamps'],
      ['a6', 'Ten stamps, one coffee'],
    ]) {
      const poster = { card_id: card?.id, paper_size, title };
      await store.post(`${store.store}/posters`, { poster });
    }
    const page = await open('posters');
    await page.locator('img').last().scrollIntoViewIfNeeded();
    await expectAccessiblePage(page, 'posters');
    await expectNarrowPage(page);
    const { body } = await store.get<PosterJson[]>(`${store.store}/posters`);
    for (const { id, paper_size } of body.slice(1)) {
      await page.goto(at(`posters/${id}`));
      await keepPicture(page, `poster-${paper_size}`);
    }
    await page.close();
  });
});

describe('the pages of locations', () => {
  it('add a location in three taps, with the position of the device as its pin', async () => {
    const page = await open('locations');
    await expectAccessiblePage(page, 'locations-empty');
    await page.getByRole('link', { name: 'Add a location' }).click();
    await page.getByLabel('Name').fill('Old Town');
    await page.getByLabel('Address').fill('Marienplatz 1, 80331 München');
    await expectAccessiblePage(page, 'location-new');
    await press(page, 'Add the location');
    await page.getByText(/^The location “.*” is added\./).waitFor();
    await expectAccessiblePage(page, 'location');
    await expectNarrowPage(page);
    await page.context().grantPermissions(['geolocation']);
    await page.context().setGeolocation({ latitude: 48.137154, longitude: 11.576124 });
    await press(page, 'Use where I am');
    await page.getByText(/^The pin of “.*” is set\./).waitFor();
    const { body } = await store.get<LocationJson[]>(`${store.store}/locations`);
    expect(body).toMatchObject([{ latitude: 48.137154, precision: 'manual' }]);
    await expectAccessiblePage(page, 'location-pinned');
    await page.goto(at('locations'));
    await expectAccessiblePage(page, 'locations');
    await expectNarrowPage(page);
    await page.close();
  });
});
