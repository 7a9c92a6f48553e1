import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import { expectAccessiblePage, startChromium } from '../support/browser/chromium.js';
import { CONSOLE_URL, expectSmallPage, signInToConsole } from '../support/browser/console-pages.js';
import { pageErrors } from '../support/browser/page-errors.mjs';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { eventually } from '../support/jest/eventually.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';
import { useWebhooks } from '../support/services/webhook-dispatcher.js';

/** Tests the pages about webhooks in a real browser, with a dispatcher and a receiver. */

const PASSWORD = 'correct horse';

let service: LocalService;
let store: Client & { email: string };
let browser: Browser;

const { receive, shareDispatcher } = useWebhooks(() => service);

beforeAll(async () => {
  service = await startService({
    PUBLIC_URL: CONSOLE_URL,
    WEBHOOK_ALLOW_INSECURE_TARGETS: 'true',
  });
  store = await service.newStore({ timeZone: 'Europe/Berlin' });
  browser = await startChromium({ 'cards.localhost': service.baseUrl });
});
afterAll(async () => {
  await browser?.close();
  await service?.stop();
});

const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();
const follow = (page: Page, name: string) =>
  page.getByRole('link', { name, exact: true }).first().click();

describe.each([true, false])('the webhooks in a browser, scripts: %s', (javaScriptEnabled) => {
  it('are made, tested, paused, turned on and deleted', async () => {
    const receiver = await receive();
    const page = await signInToConsole(browser, store, 'webhooks', { javaScriptEnabled });
    await follow(page, 'Add a webhook');
    await page.getByLabel('URL').fill(receiver.url);
    await page.getByLabel('Name').fill(`Till ${javaScriptEnabled}`);
    await page.getByLabel('Only these:').check();
    await page.getByLabel('Stamps added').check();
    await page.getByLabel('Your password').fill(PASSWORD);
    await press(page, 'Add');
    expect(await page.locator('#secret').textContent()).toMatch(/^whsec_/);
    await follow(page, 'Continue');
    await press(page, 'Send a test event');
    await page.getByText('The test event arrived.').waitFor();
    expect(receiver.received).toHaveLength(1);
    await press(page, 'Pause');
    await page.getByText('The webhook is paused.').waitFor();
    await follow(page, 'Turn on');
    await press(page, 'Turn on');
    await page.getByText('The webhook is on.').waitFor();
    await page.getByText('More', { exact: true }).click();
    await follow(page, 'Change the secret');
    await page.getByLabel('Your password').fill(PASSWORD);
    await press(page, 'Create a new secret');
    expect(await page.locator('#secret').textContent()).toMatch(/^whsec_/);
    await follow(page, 'Continue');
    await page.getByText('More', { exact: true }).click();
    await follow(page, 'Delete');
    await press(page, 'Delete');
    await page.getByText('The webhook is deleted.').waitFor();
    await page.context().close();
  });
});

describe('the pages about webhooks', () => {
  it('are accessible in light and dark, fit narrow phones, and are small', async () => {
    pageErrors.expect(/status of 422/);
    store = await service.newStore({ timeZone: 'Europe/Berlin' });
    const page = await signInToConsole(browser, store, 'webhooks');
    await expectAccessiblePage(page, 'webhooks-empty');
    const { body: location } = await store.post<{ id: number }>(`${store.store}/locations`, {
      location: { name: 'Kröner Bahnhof', address: 'Am Markt 1, Hamburg' },
    });
    const enrolled = await enrol(store, {
      card: { name: 'Coffee card with a rather long name for a form' },
    });
    const receiver = await receive((_, nth) =>
      nth === 1
        ? { status: 503, body: '{"error":"the shop is closed until tomorrow morning"}' }
        : { status: 200 },
    );
    const create = async (body: object) =>
      (
        await store.post<{ id: number }>(`${store.store}/webhook_subscriptions`, {
          target_url: receiver.url,
          ...body,
        })
      ).body.id;
    const id = await create({
      events: ['stamp.earned', 'reward.redeemed'],
      description: 'Newsletter of the harbour shop',
      headers: { Authorization: 'Bearer abc' },
      card_ids: [enrolled.card.id],
      location_ids: [location.id],
      signature: 'ed25519',
      personal_data: false,
    });
    const paused = await create({
      events: ['*'],
      target_url: 'https://a-very-long-host-name.shop.example/with/a/path/that/does/not/end/soon',
      enabled: false,
    });
    await shareDispatcher();
    await enrolled.stamp(2, { location_id: location.id });
    await enrolled.stamp(1, { location_id: location.id });
    await eventually(
      () => receiver.received,
      (received) => received.length >= 3,
    );
    const base = `${CONSOLE_URL}/app/stores/${store.accountId}/webhooks`;
    const show = async (path: string, name: string) => {
      await page.goto(base + path);
      await expectAccessiblePage(page, name);
      await expectSmallPage(page);
    };
    await show('', 'webhooks');
    await show('/new', 'webhook-new');
    await page.getByLabel('URL').fill('http://x');
    await page.getByLabel('Only these:').check();
    await page.getByText('Advanced').click();
    await page.getByLabel('Your own headers').fill('nonsense');
    await page.getByLabel('Your password').fill(PASSWORD);
    await press(page, 'Add');
    await page.getByRole('link', { name: 'Events: Please choose at least one event.' }).waitFor();
    await expectAccessiblePage(page, 'webhook-new-wrong');
    await show(`/${id}`, 'webhook');
    await show(`/${paused}`, 'webhook-paused');
    await show(`/${paused}/enable`, 'webhook-enable');
    await show(`/${id}/edit`, 'webhook-edit');
    await show(`/${id}/rotate`, 'webhook-rotate');
    await press(page, 'Create a new secret');
    await expectAccessiblePage(page, 'webhook-secret');
    await show(`/${id}/delete`, 'webhook-delete');
    await show(`/${id}/replay`, 'webhook-replay');
    await press(page, 'Send again');
    await expectAccessiblePage(page, 'webhook-replayed');
    await show(`/${id}/deliveries`, 'webhook-deliveries');
    await page.locator('tbody a').last().click();
    await page.getByText('Response', { exact: true }).first().click();
    await expectAccessiblePage(page, 'webhook-delivery');
    await expectSmallPage(page);
    await page.context().close();
  });
});
