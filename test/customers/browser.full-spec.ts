import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import type { CustomerJson } from '#loyalty/customers/customer.dto.js';
import { expectAccessiblePage, startChromium } from '../support/browser/chromium.js';
import { CONSOLE_URL, expectSmallPage, signInToConsole } from '../support/browser/console-pages.js';
import { pageErrors } from '../support/browser/page-errors.mjs';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';

/** Tests the pages about customers and the history in a real browser. */

const LONG_NAME = 'Maximiliane-Alexandrina Wolfeschlegelsteinhausenbergerdorff-Featherstonehaugh';

let service: LocalService;
let store: Client & { email: string };
let browser: Browser;
let people = 0;

beforeAll(async () => {
  service = await startService({ PUBLIC_URL: CONSOLE_URL });
  store = await service.newStore({ timeZone: 'Europe/Berlin', country: 'DE' });
  browser = await startChromium({ 'cards.localhost': service.baseUrl });
});
afterAll(async () => {
  await browser?.close();
  await service?.stop();
});

const storePath = () => `${CONSOLE_URL}/app/stores/${store.accountId}`;
const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();
const follow = (page: Page, name: string | RegExp) => page.getByRole('link', { name }).click();

/** Creates a customer whose name nobody else has. */
async function newPerson(fields: object = {}) {
  const name = `Person ${++people}`;
  const enrolled = await enrol(store, {
    card: { name: `Coffee ${people}`, stamps_required: 10 },
    rewards: [[`Espresso ${people}`, 5]],
    customer: { first_name: name, last_name: null, ...fields },
  });
  return { ...enrolled, name };
}

async function find(page: Page, name: string): Promise<void> {
  await page.goto(`${storePath()}/customers`);
  await page.getByLabel('Search').fill(name);
  await page.getByLabel('Search').press('Enter');
  await page.getByRole('link', { name, exact: true }).click();
  await page.getByRole('heading', { name, exact: true }).waitFor();
}

describe.each([true, false])('the customers in a browser, scripts: %s', (javaScriptEnabled) => {
  let page: Page;
  beforeAll(async () => {
    page = await signInToConsole(browser, store, 'customers', { javaScriptEnabled });
  });
  afterAll(() => page.context().close());

  it('are added', async () => {
    const email = `new.${javaScriptEnabled}@example.com`;
    await newPerson();
    await page.goto(`${storePath()}/customers`);
    await follow(page, 'Add a customer');
    await page.getByLabel('First name').fill('Grace');
    await page.getByLabel('Last name').fill(`Hopper ${javaScriptEnabled}`);
    await page.getByLabel('E-mail').fill(email);
    await page.getByLabel('Day').fill('9');
    await page.getByLabel('Month').selectOption('12');
    await page.getByLabel('Year').fill('1906');
    await press(page, 'Add');
    await page.getByText('The customer has been added.').waitFor();
    const main = (await page.locator('main').textContent()) ?? '';
    expect(main).toContain(`Grace Hopper ${javaScriptEnabled}`);
    expect(main).toContain('0 of 10 stamps');
    expect(main).toContain('9 December 1906');
    expect(main).not.toContain('wallet');
    await page.getByRole('img', { name: 'QR code of the link to the card' }).waitFor();
  });

  it('have a stamping undone, their stamps corrected, and are served', async () => {
    const person = await newPerson();
    await person.stamp(3);
    await find(page, person.name);
    await follow(page, /^Undo \+3 stamps/);
    await page.getByText(/^The balance goes from 3 to 0\./).waitFor();
    await page.getByLabel('Done twice by mistake').check();
    await press(page, 'Undo it');
    await page.getByText(/^The entry about the card “[^”]+” is undone\./).waitFor();
    expect(await page.locator('main').textContent()).toContain('0 of 10 stamps');
    await follow(page, /^Adjust stamps/);
    await page.getByLabel('Number of stamps').fill('6');
    await page.getByLabel('Take stamps off').check();
    await page.getByLabel('Done twice by mistake').waitFor();
    await page.getByLabel('A stamp was forgotten').waitFor({ state: 'hidden' });
    await page.getByLabel('Add stamps').check();
    await page.getByLabel('A stamp was forgotten').waitFor();
    await page.getByLabel('Done twice by mistake').waitFor({ state: 'hidden' });
    await page.getByLabel('Another reason').check();
    await page.getByLabel('Your reason').fill('Brought along from the paper card');
    await press(page, javaScriptEnabled ? 'Save: 0 → 6' : 'Save');
    await page
      .getByText(/^The stamps on the card “[^”]+” are adjusted\. The card has 6 stamps now\./)
      .waitFor();
    const main = (await page.locator('main').textContent()) ?? '';
    expect(main).toContain('6 of 10 stamps');
    expect(main).toContain('Brought along from the paper card');
    await page.getByRole('button', { name: /^Add a stamp/ }).click();
    await page.getByText(/^The stamp is on the card “/).waitFor();
    await page.getByRole('button', { name: /^Redeem Espresso/ }).click();
    await page
      .getByText(
        /^A reward was redeemed on the card “[^”]+”\. Hand it over\. The card has 2 stamps now\./,
      )
      .waitFor();
    expect(await page.locator('main').textContent()).toContain('2 of 10 stamps');
    await follow(page, /^Explain/);
    await page.getByText('Step by step').waitFor();
    expect(await page.locator('main').textContent()).toContain('Redeemed');
  });

  it('are merged, separated and erased', async () => {
    const person = await newPerson({ last_name: `Twin ${javaScriptEnabled}` });
    const { body: twin } = await store.post<CustomerJson>(`${store.store}/customers`, {
      customer: {
        first_name: 'Other',
        last_name: `Twin ${javaScriptEnabled}`,
        phone: `030 55500${people}`,
      },
      card_id: person.card.id,
    });
    await find(page, `${person.name} Twin ${javaScriptEnabled}`);
    await page.getByText('More', { exact: true }).click();
    await follow(page, 'Merge with another customer');
    await follow(page, `Choose Other Twin ${javaScriptEnabled}`);
    await page.getByText('Merge these two customers?').waitFor();
    await press(page, 'Merge');
    await page.getByText('The two customers are merged.').waitFor();
    await follow(page, 'Undo the merge');
    await press(page, 'Undo the merge');
    await page.getByText('The merge is undone.').waitFor();
    await page.getByText('More', { exact: true }).click();
    await follow(page, 'Erase');
    await press(page, 'Erase for good');
    await page.getByText('The person is erased.').waitFor();
    const { body: erased } = await store.get<CustomerJson>(
      `${store.store}/customers/${person.customer.id}`,
    );
    expect(erased.erased_at).not.toBeNull();
    const { body: left } = await store.get<CustomerJson>(`${store.store}/customers/${twin.id}`);
    expect(left.last_name).toBe(`Twin ${javaScriptEnabled}`);
  });

  it('are listed by filters, and their history too', async () => {
    const person = await newPerson({ birthday: '1990-02-03' });
    await person.stamp(4);
    await page.goto(`${storePath()}/customers`);
    await page.getByText('Filters', { exact: true }).click();
    await page.getByLabel('Card', { exact: true }).selectOption({ label: person.card.name });
    await page.getByLabel('Stamps', { exact: true }).selectOption('yes');
    await page.getByLabel('Birthday in').selectOption('2');
    await page.locator('details').getByRole('button', { name: 'Search' }).click();
    await page.getByText('1 customer', { exact: true }).waitFor();
    await follow(page, person.name);
    await page.goto(`${storePath()}/history`);
    await page.getByText('Filters', { exact: true }).click();
    await page.getByLabel('Card', { exact: true }).selectOption({ label: person.card.name });
    await page.getByLabel('What').selectOption('stamp.earned');
    await press(page, 'Show');
    await page.locator('.timeline .strong', { hasText: '+4 stamps' }).waitFor();
    expect(await page.locator('.timeline > li').count()).toBe(1);
  });
});

describe('the pages about customers', () => {
  it('are accessible in light and dark, fit narrow phones, and are small', async () => {
    pageErrors.expect(/status of 422/);
    store = await service.newStore({ timeZone: 'Europe/Berlin', country: 'DE' });
    const empty = await signInToConsole(browser, store, 'customers');
    await expectAccessiblePage(empty, 'customers-empty');
    await empty.context().close();
    const { body: location } = await store.post<{ id: number }>(`${store.store}/locations`, {
      location: { name: 'Kröner Bahnhof am Alten Güterbahnhof', address: 'Am Markt 1, Hamburg' },
    });
    const anna = await enrol(store, {
      card: { name: 'Coffee card', stamps_required: 10 },
      rewards: [
        ['Free espresso', 5],
        ['A whole cake for the table, to be ordered a day before', 10],
      ],
      customer: {
        first_name: 'Anna',
        last_name: 'Kowalczyk-Żółć',
        phone: '+4915112345678',
        birthday: '1990-05-31',
        marketing_consent: true,
        external_references: [{ source: 'till', external_id: 'A-17' }],
      },
    });
    const at = { location_id: location.id, staff_ref: 'Mira' };
    await anna.stamp(1, at);
    await anna.stamp(2, { ...at, note: 'Birthday coffee 🎂' });
    await anna.stamp(4, at);
    const names = [
      ['عبد الرحمن', 'الهاشمي'],
      ['🎉 Zoë', '☕'],
      [LONG_NAME, 'Óláfsdóttir'],
      ['李', '小龍'],
    ];
    for (const [i, [first_name, last_name]] of names.entries()) {
      await store.post(`${store.store}/customers`, {
        customer: {
          first_name,
          last_name,
          email: `guest.number.${i}@a-rather-long-domain.example`,
        },
        card_id: anna.card.id,
      });
    }
    const { body: twin } = await store.post<CustomerJson>(`${store.store}/customers`, {
      customer: { first_name: 'Ania', last_name: 'Kowalczyk', email: 'ania@example.com' },
      card_id: anna.card.id,
    });
    const [twinCard] = (await store.get<CustomerJson>(`${store.store}/customers/${twin.id}`)).body
      .customer_cards;
    await store.stamp(`${store.store}/customers/${twin.id}/customer_cards/${twinCard?.id}`, 3);
    const page = await signInToConsole(browser, store, 'customers');
    const person = `customers/${anna.customer.id}`;
    const card = `${person}/cards/${anna.customerCard.id}`;
    const show = async (path: string, name: string) => {
      await page.goto(`${storePath()}/${path}`);
      await expectAccessiblePage(page, name);
      await expectSmallPage(page);
    };
    await show('customers', 'customers');
    await show(`customers?near=yes&card_id=${anna.card.id}`, 'customers-near');
    await show('customers?search=nobody', 'customers-nobody');
    await show('customers/new', 'customer-new');
    await page.evaluate('for (const form of document.forms) form.noValidate = true');
    await page.getByLabel('Phone').fill('abc');
    await page.getByLabel('Day').fill('99');
    await press(page, 'Add');
    await page.getByText('This is not a phone number.').last().waitFor();
    await expectAccessiblePage(page, 'customer-new-wrong');
    await show(person, 'customer');
    const undo = await page.getByRole('link', { name: /^Undo \+4 stamps/ }).getAttribute('href');
    await page.goto(CONSOLE_URL + (undo ?? ''));
    await expectAccessiblePage(page, 'customer-undo');
    await expectSmallPage(page);
    await page.getByLabel('Done twice by mistake').check();
    await press(page, 'Undo it');
    await expectAccessiblePage(page, 'customer-undone');
    await show(`${card}/adjust`, 'customer-adjust');
    await show(`${card}/explain`, 'customer-explain');
    await show(`${person}/edit`, 'customer-edit');
    await show(`${person}/merge`, 'customer-merge-search');
    await show(`${person}/merge/${twin.id}`, 'customer-merge');
    await show(`${person}/erase`, 'customer-erase');
    await show('history', 'history');
    await show(`history?customer_id=${anna.customer.id}`, 'history-of-customer');
    await show('', 'overview');
    await page.context().close();
    const german = await signInToConsole(browser, store, person, { locale: 'de-DE' });
    await expectAccessiblePage(german, 'customer-german');
    await german.context().close();
  });
});
