import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import { UNNAMED_STORE } from '#loyalty/accounts/account.js';
import { keepPicture, SIZES, startChromium } from '../support/browser/chromium.js';
import { CONSOLE_URL } from '../support/browser/console-pages.js';
import { LASTING_OUTCOMES } from '../support/browser/counter.js';
import { writeFakeCamera } from '../support/browser/fake-camera.js';
import { readQrCode } from '../support/browser/qr-codes.js';
import { eventually } from '../support/jest/eventually.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';
import { runStatistics } from '../support/services/statistics.js';

/** Plays the first day of a shop in a real browser: its owner, Mira of the team, and a guest. Nobody uses the API. */

const PASSWORD = 'correct horse';
const MIRA = {
  email: 'mira@corner.example',
  name: 'Mira',
  password: 'seven quiet lanterns',
  pin: '407185',
};

let service: LocalService;
let store: Client & { email: string };
let browser: Browser;
let folder: string;
const stopping = new AbortController();
let work: Promise<unknown>;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'inkpad-first-day-'));
  service = await startService({ PUBLIC_URL: CONSOLE_URL });
  store = await service.newStore();
  await store.send('PATCH', store.store, { account: { name: UNNAMED_STORE } });
  work = runStatistics(service, stopping.signal);
  browser = await startChromium({ 'cards.localhost': service.baseUrl });
});
afterAll(async () => {
  await browser?.close();
  stopping.abort();
  await work;
  await service?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const follow = (page: Page, name: string | RegExp) => page.getByRole('link', { name }).click();
const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();
const overview = () => `${CONSOLE_URL}/app/stores/${store.accountId}`;

async function openPhone(at: Browser, url: string): Promise<Page> {
  const context = await at.newContext({
    viewport: SIZES.phone,
    locale: 'en-GB',
    timezoneId: 'Europe/Berlin',
  });
  await context.addInitScript({ content: LASTING_OUTCOMES });
  const page = await context.newPage();
  await page.goto(url);
  return page;
}

async function signIn(page: Page, email: string, password: string): Promise<void> {
  await page.getByLabel('E-mail').fill(email);
  await page.getByLabel('Password').fill(password);
  await press(page, 'Sign in');
}

/** Follows a step of the overview, which is not done yet. */
async function takeStep(page: Page, title: string): Promise<void> {
  await page.goto(overview());
  const link = page.getByRole('link', { name: title });
  if (!(await link.isVisible())) await page.getByText('Good to have before many customers').click();
  // The next step has a button, and those after it a link.
  await follow(page, new RegExp(`^(Go )?${title}$`));
}

async function nameShop(page: Page): Promise<void> {
  await takeStep(page, 'Name your shop');
  await keepPicture(page, 'first-day-name');
  await page.getByLabel('Name').fill('Corner Café');
  await press(page, 'Save');
  await page.getByText('1 of').waitFor();
}

async function designCard(page: Page): Promise<void> {
  await takeStep(page, 'Create your first card');
  await follow(page, /Café/);
  await page.getByLabel('Name of the card').fill('Corner card');
  await press(page, 'Create the card');
  await page.getByText('The card is ready.').waitFor();
}

/** @returns the link of the invitation, which the service cannot send */
async function inviteMira(page: Page): Promise<string> {
  await takeStep(page, 'Invite your team');
  await page.getByLabel('E-mail').fill(MIRA.email);
  await page.getByRole('radio', { name: 'Staff' }).check();
  await page.getByLabel('Your password').fill(PASSWORD);
  await press(page, 'Create invitation');
  const link = await page.locator('#link').textContent();
  await follow(page, 'Done');
  return link?.trim() ?? '';
}

/** Accepts the invitation on Mira's own phone, and sets her PIN. */
async function joinTeam(link: string): Promise<void> {
  const page = await openPhone(browser, link);
  await page.getByLabel('Your name').fill(MIRA.name);
  await page.getByLabel('Choose a password').fill(MIRA.password);
  await press(page, 'Accept and sign in');
  await page.waitForURL(`${CONSOLE_URL}/counter/${store.accountId}`);
  await follow(page, `${MIRA.name}: change person`);
  await follow(page, 'Set your PIN');
  await page.getByLabel('New PIN').fill(MIRA.pin);
  await page.getByLabel('Your password').fill(MIRA.password);
  await press(page, 'Save the PIN');
  await page.getByText('Your PIN is set.').waitFor();
  await page.context().close();
}

/** @returns what a phone reads on the poster */
async function makePoster(page: Page): Promise<string> {
  await takeStep(page, 'Make a poster');
  await page.getByLabel('Headline').fill('Collect stamps, get a coffee');
  await press(page, 'Make the poster');
  await page.getByText('The poster is ready to print.').waitFor();
  await page.goto(`${overview()}/posters`);
  await follow(page, 'Show the poster: Collect stamps, get a coffee');
  const sheet = page.locator('.sheet');
  await sheet.waitFor();
  return (await readQrCode(await sheet.screenshot())) ?? '';
}

/** Signs a guest up. @returns their page with the card */
async function signUp(url: string): Promise<Page> {
  const page = await openPhone(browser, url);
  await keepPicture(page, 'first-day-sign-up');
  await page.getByLabel('First name').fill('Anna');
  await page.getByLabel('E-mail').fill('anna@guest.example');
  await press(page, 'Get the card');
  await page.getByText('You’re in, Anna!').waitFor();
  await keepPicture(page, 'first-day-card');
  return page;
}

/** Scans the card on the phone of the shop until it is full, and redeems it. */
async function serveGuest(code: string): Promise<void> {
  const film = join(folder, 'card.y4m');
  const scenes = [
    { code: null, frames: 8 },
    { code, frames: 8 },
    { code: null, frames: 4000 },
  ];
  const more = await writeFakeCamera(film, scenes, 4);
  const withCamera = await startChromium({ 'cards.localhost': service.baseUrl }, more);
  try {
    const page = await openPhone(withCamera, `${CONSOLE_URL}/counter`);
    await signIn(page, store.email, PASSWORD);
    await follow(page, 'Owner: change person');
    await page.getByLabel(MIRA.name).check();
    await page.getByLabel('PIN', { exact: true }).fill(MIRA.pin);
    const result = page.locator('#result');
    await result.getByText('1 of 10').waitFor();
    await keepPicture(page, 'first-day-scan');
    for (let stamps = 2; stamps <= 10; stamps++) {
      await press(page, '+1');
      await result.getByText(`${stamps} of 10`).waitFor();
    }
    await keepPicture(page, 'first-day-full');
    await press(page, 'Redeem Free coffee (uses 10 stamps)');
    await result.getByText('Free coffee redeemed. Hand it over.').waitFor();
    await result.getByText('0 of 10').waitFor();
  } finally {
    await withCamera.close();
  }
}

async function readNumbers(page: Page): Promise<(string | null)[]> {
  await page.goto(`${overview()}/numbers`);
  const read = (label: string) =>
    page.locator(`dt:text-is("${label}") + dd`).first().textContent({ timeout: 2000 });
  return Promise.all(['Stamps', 'Rewards redeemed', 'New customers'].map(read));
}

it('a shop designs its first card, welcomes its first guest and gives out its first reward', async () => {
  const owner = await openPhone(browser, `${CONSOLE_URL}/app`);
  await signIn(owner, store.email, PASSWORD);
  await owner.getByText('0 of').waitFor();
  await nameShop(owner);
  const named = { name: 'Corner Café', country: 'DE', time_zone: 'Europe/Berlin' };
  expect((await store.get(store.store)).body).toMatchObject(named);
  await designCard(owner);
  await joinTeam(await inviteMira(owner));
  const signUpUrl = await makePoster(owner);
  expect(signUpUrl).toMatch(/\/join\/[^/]+\?src=qr$/);
  const guest = await signUp(signUpUrl);
  const code = await readQrCode(await guest.locator('.qr').screenshot());
  expect(code).toMatch(/^[0-9A-Z]{8}$/);
  await serveGuest(code ?? '');
  await guest.reload();
  await guest.getByText('0/10').or(guest.getByText('0 / 10')).first().waitFor();

  const isComplete = (read: (string | null)[]) => read.join() === '10,1,1';
  await eventually(() => readNumbers(owner).catch(() => []), isComplete);
  await keepPicture(owner, 'first-day-numbers');
  await owner.goto(`${overview()}/history`);
  const history = owner.locator('main');
  await history.getByText('Free coffee').first().waitFor();
  expect(await history.textContent()).toContain('Mira');
  await keepPicture(owner, 'first-day-history');
  await owner.goto(overview());
  expect(await owner.locator('.steps li:not(.done) .strong').allTextContents()).toEqual([
    'Add your logo',
    'Add your first location',
    'Say how you handle data',
  ]);
  await owner.getByText(/^You are ready to stamp\. Also useful: Add your logo, /).waitFor();
  await keepPicture(owner, 'first-day-overview');
});
