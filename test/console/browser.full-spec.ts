import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import { RecordGeocoding } from '#loyalty/locations/location.commands.js';
import type { LocationJson } from '#loyalty/locations/location.dto.js';
import {
  expectAccessiblePage,
  keepPicture,
  SIZES,
  startChromium,
} from '../support/browser/chromium.js';
import { pageErrors } from '../support/browser/page-errors.mjs';
import { eventually } from '../support/jest/eventually.js';
import { MessageFollower } from '../support/services/message-dispatcher.js';
import { cli, Client, startService, type LocalService } from '../support/services/service.js';
import { newPoster } from '../support/browser/signup.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

/** Tests the console in a real browser. */

const PUBLIC_URL = 'http://cards.localhost';
const PASSWORD = 'correct horse';

let service: LocalService;
let store: Client & { email: string };
let browser: Browser;

beforeAll(async () => {
  service = await startService({ PUBLIC_URL });
  store = await service.newStore({ timeZone: 'Europe/Berlin' });
  browser = await startChromium({ 'cards.localhost': service.baseUrl });
});
afterAll(async () => {
  await browser?.close();
  await service?.stop();
});

/** @param path in the store */
async function open(path: string, { javaScriptEnabled = true } = {}): Promise<Page> {
  const context = await browser.newContext({ viewport: SIZES.phone, javaScriptEnabled });
  const page = await context.newPage();
  await page.goto(PUBLIC_URL + path);
  return page;
}

const getStorePath = () => `/app/stores/${store.accountId}`;

/** Opens a page of the store and signs in as its owner. */
async function signInTo(path: string, { javaScriptEnabled = true } = {}): Promise<Page> {
  const page = await open(`${getStorePath()}/${path}`, { javaScriptEnabled });
  await page.getByLabel('E-mail').fill(store.email);
  await page.getByLabel('Password').fill(PASSWORD);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  return page;
}

const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();

describe.each([true, false])('the console in a browser, scripts: %s', (javaScriptEnabled) => {
  it('creates a token that works until it is revoked', async () => {
    const name = `till ${javaScriptEnabled}`;
    const page = await signInTo('tokens', { javaScriptEnabled });
    await page.getByLabel('Name').fill(name);
    await page.getByLabel('Valid').selectOption('90');
    await page.getByLabel('Your password').fill(PASSWORD);
    await press(page, 'Create token');
    const token = (await page.locator('#token').textContent()) ?? '';
    const client = new Client(service.baseUrl, store.accountId, token);
    expect((await client.get(client.store)).status).toBe(200);
    await page.getByRole('link', { name: 'Done' }).click();
    expect(await page.locator('main').textContent()).not.toContain(token);
    await page.getByRole('link', { name: `Revoke ${name}` }).click();
    await page.getByRole('link', { name: 'Keep it' }).click();
    expect((await client.get(client.store)).status).toBe(200);
    await page.getByRole('link', { name: `Revoke ${name}` }).click();
    await press(page, 'Revoke it');
    await page.getByText('The token is revoked.').waitFor();
    await eventually(
      async () => (await client.get(client.store)).status,
      (status) => status === 401,
    );
    await page.context().close();
  });

  it('sets and confirms the coordinates of locations', async () => {
    pageErrors.expect(/status of 422/);
    const [name, streetName] = [`Harbour ${javaScriptEnabled}`, `Market ${javaScriptEnabled}`];
    const [unknown, street] = await Promise.all([createLocation(name), createLocation(streetName)]);
    await recordGeocoding(street, 'street');
    const page = await signInTo('locations', { javaScriptEnabled });
    await page.getByRole('link', { name: `Edit ${name}` }).click();
    await page.getByText('Or enter latitude and longitude').click();
    await page.getByLabel('Latitude').fill('north');
    await press(page, 'Set the pin');
    await page.getByRole('alert').getByText('Please paste a link from a map').waitFor();
    await page.getByLabel('Latitude').fill('https://www.openstreetmap.org/#map=19/53.5411/9.9833');
    await press(page, 'Set the pin');
    await page.getByText(/^The pin of “.*” is set\./).waitFor();
    expect(await readLocation(unknown)).toMatchObject({
      latitude: 53.5411,
      longitude: 9.9833,
      geocode_status: 'ok',
      precision: 'manual',
    });
    await page.goto(`${PUBLIC_URL}${getStorePath()}/locations`);
    await page.getByRole('link', { name: `Edit ${streetName}` }).click();
    await press(page, 'Confirm the pin');
    await page.getByText(/^The pin of “.*” is set\./).waitFor();
    expect(await readLocation(street)).toMatchObject({ latitude: 53.55, precision: 'manual' });
    await page.context().close();
  });

  it('shows the text of a message and why it was not sent', async () => {
    const customer = { first_name: 'Grace', last_name: `Hopper ${javaScriptEnabled}` };
    await enrol(store, {
      customer: { ...customer, email: `grace.${javaScriptEnabled}@navy.example` },
      links: true,
    });
    await processMessages();
    const page = await signInTo('messages/links', { javaScriptEnabled });
    const to = `${customer.first_name} ${customer.last_name}`;
    await page.getByRole('link', { name: `Show the message to ${to}` }).click();
    const text = await page.locator('main').textContent();
    expect(text).toContain('no mail server is set up');
    expect(text).toContain('Your stamp card from Corner Café');
    await page.getByRole('link', { name: 'Card links', exact: true }).click();
    await page.getByRole('heading', { name: 'Card links' }).waitFor();
    await page.context().close();
  });

  it('has a menu that unfolds on phones', async () => {
    const page = await signInTo('posters', { javaScriptEnabled });
    const users = page.getByRole('link', { name: 'Users', exact: true });
    expect(await users.count()).toBe(0);
    await page.locator('summary').filter({ hasText: 'Posters' }).click();
    await keepPicture(page, 'menu');
    await users.click();
    await page.getByRole('heading', { name: 'Users', exact: true }).waitFor();
    await page.context().close();
  });

  it('leads from the list of posters to a poster', async () => {
    const title = `Ten stamps ${javaScriptEnabled}`;
    const poster = await newPoster(store, { title });
    const page = await signInTo('posters', { javaScriptEnabled });
    await page.getByRole('link', { name: `Show the poster: ${title}` }).click();
    expect(page.url()).toBe(poster.display_url);
    await page.getByText('Poster to print').waitFor();
    await page.context().close();
  });
});

async function createLocation(name: string): Promise<LocationJson> {
  const location = { name, address: 'Am Sandtorkai 30, 20457 Hamburg' };
  return (await store.post<LocationJson>(`${store.store}/locations`, { location })).body;
}

async function recordGeocoding(
  { id, address }: LocationJson,
  precision: 'street' | 'city',
): Promise<void> {
  const geocoding = { status: 'ok', precision, latitude: 53.55, longitude: 9.99 } as const;
  const context = { ...cli, accountId: store.accountId };
  await service.execute(new RecordGeocoding(context, id, address, geocoding, 'test'));
}

const readLocation = async ({ id }: LocationJson) =>
  (await store.get<LocationJson>(`${store.store}/locations/${id}`)).body;

/** Waits until a dispatcher without a mail server has processed every requested message. */
async function processMessages(): Promise<void> {
  const follower = new MessageFollower(service);
  try {
    await follower.waitUntilSettled();
  } finally {
    await follower.stop();
  }
}

describe('the console in a browser', () => {
  it('uses the position of the device for a pin', async () => {
    const location = await createLocation('Where I am');
    const page = await signInTo(`locations/${location.id}`);
    await page.context().grantPermissions(['geolocation']);
    await page.context().setGeolocation({ latitude: 48.137154, longitude: 11.576124 });
    await press(page, 'Use where I am');
    await page.getByText(/^The pin of “.*” is set\./).waitFor();
    expect(await readLocation(location)).toMatchObject({
      latitude: 48.137154,
      longitude: 11.576124,
      precision: 'manual',
    });
    await page.context().close();
  });

  it('has accessible pages of tokens, users, settings, the audit log and new stores', async () => {
    const page = await signInTo('tokens');
    for (const [name, lifetime] of [
      ['web shop of the harbour', '365'],
      ['till', ''],
    ] as const) {
      await page.getByLabel('Name').fill(name);
      await page.getByLabel('Valid').selectOption(lifetime);
      await page.getByLabel('Role').selectOption('staff');
      await page.getByLabel('Stores').selectOption('one');
      await page.getByLabel('Read only').check();
      await page.getByLabel('Your password').fill(PASSWORD);
      await press(page, 'Create token');
      if (name !== 'till') await page.getByRole('link', { name: 'Done' }).click();
    }
    await expectAccessiblePage(page, 'token-made');
    await page.goto(`${PUBLIC_URL}${getStorePath()}/users`);
    await page.getByLabel('E-mail').fill('ada.lovelace@analytical-engines.example');
    await page.getByLabel('Your password').fill(PASSWORD);
    await press(page, 'Create invitation');
    await expectAccessiblePage(page, 'invited');
    const link = (await page.locator('#link').textContent()) ?? '';
    const invitationPage = await open(new URL(link).pathname);
    await expectAccessiblePage(invitationPage, 'invitation');
    await invitationPage.context().close();
    await page.goto(`${PUBLIC_URL}${getStorePath()}/users`);
    await page.getByRole('link', { name: /^Withdraw/ }).click();
    await expectAccessiblePage(page, 'withdraw');
    for (const path of ['tokens', 'users', 'settings', 'audit']) {
      await page.goto(`${PUBLIC_URL}${getStorePath()}/${path}`);
      await expectAccessiblePage(page, path);
    }
    await page.goto(`${PUBLIC_URL}/app/new-store`);
    await expectAccessiblePage(page, 'new-store');
    await page.context().close();
  });

  it('has accessible pages of locations, messages and posters, also when they are empty', async () => {
    pageErrors.expect(/status of 422/);
    const empty = await service.newStore();
    const page = await signInTo('');
    const town = await createLocation('Found in town only, with a name that is rather long');
    await recordGeocoding(town, 'city');
    const { customerCard } = await enrol(store, {
      customer: { first_name: 'Ada', email: 'ada@analytical.example' },
      links: true,
    });
    await processMessages();
    await newPoster(store, { active: false, title: 'Summer card' });
    for (const path of ['locations', 'messages/links', 'posters']) {
      await page.goto(`${PUBLIC_URL}${getStorePath()}/${path}`);
      await expectAccessiblePage(page, path.replace('/', '-'));
    }
    for (const { id, name } of [town, await createLocation('Not known yet')]) {
      await page.goto(`${PUBLIC_URL}${getStorePath()}/locations/${id}`);
      await expectAccessiblePage(page, name === town.name ? 'pin-town' : 'pin-pending');
    }
    await page.getByText('Or enter latitude and longitude').click();
    await page.getByLabel('Latitude').fill('north');
    await press(page, 'Set the pin');
    await expectAccessiblePage(page, 'pin-wrong');
    await page.getByLabel('Latitude').fill('53.5411, 9.9833');
    await press(page, 'Set the pin');
    await expectAccessiblePage(page, 'pin-set');
    await page.goto(`${PUBLIC_URL}${getStorePath()}/messages/links`);
    await page.getByRole('link', { name: /Show the message to Ada/ }).click();
    await expectAccessiblePage(page, 'message');
    expect(await page.locator('main').textContent()).toContain(customerCard.uuid);
    await page.context().close();
    const otherPage = await open(`/app/stores/${empty.accountId}/locations`);
    await otherPage.getByLabel('E-mail').fill(empty.email);
    await otherPage.getByLabel('Password').fill(PASSWORD);
    await press(otherPage, 'Sign in');
    for (const path of ['locations', 'messages', 'posters']) {
      await otherPage.goto(`${PUBLIC_URL}/app/stores/${empty.accountId}/${path}`);
      await expectAccessiblePage(otherPage, `${path}-empty`);
    }
    await otherPage.context().close();
  });
});
