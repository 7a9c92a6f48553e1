import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import { MasterKeys } from '#platform/database/master-keys.js';
import { UpdateAccount } from '#loyalty/accounts/account.commands.js';
import type { CustomerListJson } from '#loyalty/customers/customer-list.dto.js';
import type { PosterJson } from '#loyalty/posters/poster.dto.js';
import { addConsentToken } from '#outbound/messages/consent-links.js';
import {
  expectAccessiblePage,
  keepPicture,
  SIZES,
  startChromium,
} from '../support/browser/chromium.js';
import { pageErrors } from '../support/browser/page-errors.mjs';
import { eventually } from '../support/jest/eventually.js';
import { readQrCode } from '../support/browser/qr-codes.js';
import { cli, startService, type Client, type LocalService } from '../support/services/service.js';
import { newPoster } from '../support/browser/signup.js';

/** Tests the sign-up page in a real browser. */

const PUBLIC_URL = 'http://cards.localhost';

let service: LocalService;
let store: Client;
let browser: Browser;
let poster: PosterJson;

beforeAll(async () => {
  service = await startService({ PUBLIC_URL });
  store = await service.newStore({ timeZone: 'Europe/Berlin', country: 'DE' });
  await service.execute(
    new UpdateAccount({ ...cli, accountId: store.accountId }, 0, {
      storeName: 'Café am Hafen',
      consentTexts: {
        marketing: 'Café am Hafen may write to me about offers. I can take this back at any time.',
        sms: 'It may also send me text messages.',
        privacy: 'We keep what you enter here for your card, and for nothing else.',
        privacyUrl: 'https://cafe.example/privacy',
      },
    }),
  );
  const look = { primary_color: '#5B3A29', text_color: '#FFF3E0', secondary_color: '#FFE0B2' };
  poster = await newPoster(
    store,
    { ...look, require_birthday: true, minimum_age: 16 },
    { name: 'Coffee club', card_color: '#5B3A29', text_color: '#FFF3E0', initial_stamps: 1 },
  );
  browser = await startChromium({ 'cards.localhost': service.baseUrl });
});
afterAll(async () => {
  await browser?.close();
  await service?.stop();
});

/** Reads the URL from the poster's QR code. */
async function scanPoster({ display_url: url }: PosterJson): Promise<string> {
  const response = await fetch(`${service.baseUrl}${new URL(url).pathname}.png`);
  return (await readQrCode(Buffer.from(await response.arrayBuffer()))) ?? '';
}

async function open(
  { qr_code_url: url }: Pick<PosterJson, 'qr_code_url'>,
  { javaScriptEnabled = true } = {},
): Promise<Page> {
  const context = await browser.newContext({ viewport: SIZES.phone, javaScriptEnabled });
  const page = await context.newPage();
  await page.goto(url);
  return page;
}

async function fill(page: Page, email: string, phone = '0151 12345678'): Promise<void> {
  await page.getByLabel('First name').fill('Grace');
  await page.getByLabel('Last name').fill('Hopper');
  await page.getByLabel('E-mail').fill(email);
  await page.getByLabel('Phone').fill(phone);
  await page.getByLabel('Day').fill('31');
  await page.getByLabel('Month').fill('5');
  await page.getByLabel('Year').fill('1990');
}

const submit = (page: Page) => page.getByRole('button', { name: 'Get the card' }).click();

const findCustomers = async (email: string) =>
  (
    await store.get<CustomerListJson>(
      `${store.store}/customers?search=${encodeURIComponent(email)}`,
    )
  ).body.customers;

describe('the sign-up page in a browser', () => {
  it('leads from the poster to the card', async () => {
    const page = await open({ qr_code_url: await scanPoster(poster) });
    await expectAccessiblePage(page, 'join');
    await fill(page, 'grace@navy.example');
    await page.getByLabel('Café am Hafen may write to me').check();
    await submit(page);
    await page.waitForURL(/\/passes\/[0-9a-f-]{36}/);
    expect(await page.locator('.count strong').textContent()).toBe('1 / 10');
    expect(await page.locator('main').textContent()).toContain('Grace Hopper');
    expect(await page.locator('#joined').isVisible()).toBe(true);
    await expectAccessiblePage(page, 'joined');
    const [customer] = await findCustomers('grace@navy.example');
    expect(page.url()).toContain(customer?.customer_cards[0]?.uuid);
    expect(customer).toMatchObject({
      birthday: '1990-05-31',
      marketing_consent: true,
      sms_consent: false,
    });
    await page.context().close();
  });

  it.each(['email_only', 'phone_only', 'email_and_phone'])(
    'is accessible with the mode %s',
    async (mode) => {
      const plain = await newPoster(store, {
        contact_collection_mode: mode,
        ...(mode === 'email_and_phone' && { require_email: false }),
      });
      const page = await open(plain);
      await expectAccessiblePage(page, `join-${mode}`);
      await page.context().close();
    },
  );

  it('shows an error at its field and keeps the rest of the input', async () => {
    pageErrors.expect(/status of 422/);
    const page = await open(poster);
    await fill(page, 'ada@analytical.example', '12');
    await submit(page);
    const phone = page.getByLabel('Phone');
    await page.getByText('That doesn’t look like a phone number.').last().waitFor();
    expect(await page.title()).toMatch(/^1 error/);
    expect(await phone.getAttribute('aria-invalid')).toBe('true');
    expect(await page.getByLabel('E-mail').inputValue()).toBe('ada@analytical.example');
    expect(await page.getByLabel('Year').inputValue()).toBe('1990');
    await expectAccessiblePage(page, 'join-errors');
    await phone.fill('+44 20 7946 0000');
    await submit(page);
    await page.waitForURL(/\/passes\//);
    expect((await findCustomers('ada@analytical.example'))[0]?.phone).toBe('+442079460000');
    await page.context().close();
  });

  it('works without JavaScript, and shows an existing customer the same as a new one', async () => {
    const snapshots: string[] = [];
    const qr_code_url = await scanPoster(poster);
    for (const name of ['new', 'existing']) {
      const page = await open({ qr_code_url }, { javaScriptEnabled: false });
      await fill(page, 'marie@curie.example', '');
      await submit(page);
      await page.waitForURL(/\/passes\//);
      expect(await page.locator('svg.qr').isVisible()).toBe(true);
      const snapshot = (await page.locator('main').ariaSnapshot())
        .replaceAll(/\b[2-9A-Z]{8}\b/g, 'CODE')
        .replaceAll(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'UUID');
      snapshots.push(snapshot);
      await keepPicture(page, `joined-without-scripts-${name}`);
      await page.context().close();
    }
    expect(snapshots[1]).toBe(snapshots[0]);
    expect(await findCustomers('marie@curie.example')).toHaveLength(1);
  });

  it('leads to the card when the button is pressed twice', async () => {
    const page = await open(poster);
    await fill(page, 'twice@click.example', '');
    await page.getByRole('button', { name: 'Get the card' }).dblclick();
    // Does not wait for the URL: the second press makes the browser drop the first navigation, and the wait would fail.
    await page.locator('#joined').waitFor();
    const [customer] = await findCustomers('twice@click.example');
    expect(page.url()).toContain(`/passes/${customer?.customer_cards[0]?.uuid}`);
    await page.context().close();
  });

  it('asks for the consent on the page of the link, and stores the card without the question', async () => {
    const signup = await open(poster);
    const contact = { email: 'mary@somerville.example', phone: '+4915112345670' };
    await fill(signup, contact.email, contact.phone);
    await signup.getByLabel('Café am Hafen may write to me').check();
    await signup.getByLabel('It may also send me text messages').check();
    await submit(signup);
    await signup.locator('#joined').waitFor();
    const link = signup.url().replace(/[?].*/, '');
    const key = service.app.get(MasterKeys).getDataKey('consent links');
    const { accountId } = store;
    const findConsents = async () =>
      (await findCustomers(contact.email)).map(({ unconfirmed_consents: waiting }) => waiting);
    const sayYes = async (page: Page) => {
      await page.getByRole('button', { name: 'Yes, I want news' }).click();
      await page.getByText('You now get news from Café am Hafen').waitFor();
    };
    const linkFor = (kind: 'marketing' | 'sms') => ({
      qr_code_url: addConsentToken(link, key, { accountId, contact }, kind),
    });
    const page = await open(linkFor('marketing'));
    const withoutScripts = await open(linkFor('sms'), { javaScriptEnabled: false });
    await expectAccessiblePage(page, 'news-question');
    const readStored = () =>
      page.evaluate<string>(
        `caches.match(location.origin + location.pathname).then((response) => response ? response.text() : '')`,
      );
    await eventually(readStored, (text) => text.includes('id="card"'));
    // An update of the card leaves the question where it is.
    await page.evaluate('refresh()');
    expect(await findConsents()).toEqual([['marketing', 'sms']]);
    await sayYes(page);
    expect(await findConsents()).toEqual([['sms']]);
    await expectAccessiblePage(page, 'news-on');
    expect(await readStored()).not.toContain('id="news"');
    await sayYes(withoutScripts);
    expect(await findConsents()).toEqual([[]]);
    for (const opened of [signup, page, withoutScripts]) await opened.context().close();
  });

  it('has an accessible page for an inactive poster', async () => {
    pageErrors.expect(/status of 410/);
    const inactivePoster = await newPoster(store, { active: false });
    const page = await open(inactivePoster);
    await expectAccessiblePage(page, 'join-closed');
    await page.context().close();
  });
});
