import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import type { AnnouncementJson } from '#outbound/campaigns/announcement.dto.js';
import type { MessageRuleJson } from '#outbound/campaigns/message-rule.dto.js';
import { expectAccessiblePage, startChromium } from '../support/browser/chromium.js';
import { pageErrors } from '../support/browser/page-errors.mjs';
import { CONSOLE_URL, expectSmallPage, signInToConsole } from '../support/browser/console-pages.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { eventually } from '../support/jest/eventually.js';
import { runStatistics } from '../support/services/statistics.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';

/** Tests the pages on which a store writes to the holders of its cards, in a real browser. */

let service: LocalService;
let store: Client & { email: string };
let browser: Browser;
let following: Promise<void>;
const stopping = new AbortController();

beforeAll(async () => {
  service = await startService({
    PUBLIC_URL: CONSOLE_URL,
    TRUST_PROXY_HOPS: '1',
    SMTP_URL: 'smtp://127.0.0.1:1',
    MAIL_FROM: 'Inkpad <inkpad@shop.example>',
  });
  following = runStatistics(service, stopping.signal);
  store = await service.newStore({ timeZone: 'Europe/Berlin' });
  browser = await startChromium({ 'cards.localhost': service.baseUrl });
});
afterAll(async () => {
  await browser?.close();
  stopping.abort();
  await following;
  await service?.stop();
});

const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();
const follow = (page: Page, name: string) =>
  page.getByRole('link', { name, exact: true }).first().click();
const listAnnouncements = async () =>
  (await store.get<AnnouncementJson[]>(`${store.store}/announcements`)).body;
/** Noon in UTC is a time of the day that no zone nearby skips or has twice. */
const sendAt = new Date(
  `${new Date(Date.now() + 30 * 86_400_000).toISOString().slice(0, 10)}T12:00Z`,
);
const inBerlin = new Intl.DateTimeFormat('sv-SE', {
  timeZone: 'Europe/Berlin',
  dateStyle: 'short',
  timeStyle: 'short',
});
const listRules = async () =>
  (await store.get<MessageRuleJson[]>(`${store.store}/message_rules`)).body;

/** Adds customers with consent to e-mails, of whom some have no address. */
async function addHolders(client: Client, count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    const { customer } = await enrol(client, {
      card: { name: `Card ${i}` },
      rewards: [['Espresso', 5]],
      customer: { first_name: i === 0 ? 'محمد' : `Guest ${i}` },
    });
    await client.send('PATCH', `${client.store}/customers/${customer.id}`, {
      customer: { marketing_consent: i % 2 === 0 },
    });
  }
}

describe.each([true, false])('messages in a browser, scripts: %s', (javaScriptEnabled) => {
  it('are written, counted, changed, scheduled and cancelled', async () => {
    store = await service.newStore({ timeZone: 'Europe/Berlin' });
    await addHolders(store, 3);
    const page = await signInToConsole(browser, store, 'messages', { javaScriptEnabled });
    await follow(page, 'Write a message');
    await page.getByLabel('Headline').fill('Closed on Monday');
    await page.getByLabel('Text', { exact: true }).fill('We are back on Tuesday at eight.');
    expect(await page.getByLabel('SMS').isDisabled()).toBe(true);
    expect(await page.getByLabel('SMS').isChecked()).toBe(false);
    if (!javaScriptEnabled) await press(page, 'Count and preview');
    const result = page.locator('#message-result');
    await result.locator('.mock-sheet').getByText('Closed on Monday').waitFor();
    expect(await result.locator('.figures').innerText()).toMatch(/3[\s\S]*2[\s\S]*1/);
    expect(await result.locator('.mock.sms').count()).toBe(0);
    await press(page, 'Save');
    await page.getByText('The message is saved as a draft.').waitFor();
    await follow(page, 'Change');
    await page.getByLabel('Headline').fill('Closed on Monday and Tuesday');
    await press(page, 'Save');
    await page.getByText('The message is saved.').waitFor();
    await page.getByLabel('Or at this time').fill(inBerlin.format(sendAt).replace(' ', 'T'));
    await press(page, 'Schedule');
    await page.getByText('The message is scheduled for').waitFor();
    expect(await listAnnouncements()).toMatchObject([
      {
        state: 'scheduled',
        title: 'Closed on Monday and Tuesday',
        channels: ['web_push', 'email'],
        send_at: sendAt.toISOString(),
      },
    ]);
    await follow(page, 'Cancel the message');
    await press(page, 'Cancel it');
    await page.getByText('The message is cancelled.').waitFor();
    await page.context().close();
  });

  it('are sent after a confirmation with their number', async () => {
    store = await service.newStore();
    await addHolders(store, 1);
    await store.post(`${store.store}/announcements`, {
      title: 'Open again',
      text: 'From eight.',
    });
    const page = await signInToConsole(browser, store, 'messages/announcements', {
      javaScriptEnabled,
    });
    await page.getByRole('link', { name: 'Open the message “Open again”' }).click();
    await follow(page, 'Send now');
    await page.getByText('Send to 1 of 1 customer?').waitFor();
    await press(page, 'Send to 1 customer');
    await page.getByText('The message is being sent.').waitFor();
    expect(await listAnnouncements()).toMatchObject([{ title: 'Open again' }]);
    expect((await listAnnouncements())[0]?.state).not.toBe('draft');
    await page.context().close();
  });

  it('come from rules, which first show whom they would have reached', async () => {
    store = await service.newStore();
    const { stamp } = await enrol(store, { rewards: [['Espresso', 5]] });
    await stamp(4);
    const page = await signInToConsole(browser, store, 'messages/rules', { javaScriptEnabled });
    await follow(page, 'Add a rule');
    await press(page, 'Continue');
    await page.getByLabel('Headline').fill('One more stamp');
    if (!javaScriptEnabled) await press(page, 'Preview');
    await page.locator('#message-result .mock-sheet').getByText('One more stamp').waitFor();
    await press(page, 'Save');
    await page.getByText('The rule is saved, and still off.').waitFor();
    // The history follows in a moment.
    await eventually(
      async () => {
        await page.reload();
        return page.locator('.figures').innerText();
      },
      (text) => /Messages[\s\S]*1[\s\S]*1[\s\S]*1/.test(text),
    );
    await page.locator('summary', { hasText: 'Who would have got it' }).click();
    await page.getByRole('table', { name: 'Who would have got it' }).waitFor();
    expect(await listRules()).toMatchObject([
      { kind: 'stamps_away', threshold: 1, title: 'One more stamp', enabled: false },
    ]);
    await press(page, 'Turn on');
    await page.getByText('The rule is on.', { exact: true }).waitFor();
    expect(await listRules()).toMatchObject([{ enabled: true }]);
    await press(page, 'Turn off');
    await page.getByText('The rule is off.', { exact: true }).waitFor();
    await follow(page, 'Delete the rule');
    await press(page, 'Delete it');
    await page.getByText('The rule is deleted.').waitFor();
    expect(await listRules()).toEqual([]);
    await page.context().close();
  });
});

describe('the pages about messages', () => {
  it('say what is wrong with an input, and keep it', async () => {
    pageErrors.expect(/status of 422/);
    const page = await signInToConsole(browser, store, 'messages/announcements/new', {
      javaScriptEnabled: false,
    });
    for (const name of ['Browser', 'E-mail']) await page.getByLabel(name).uncheck();
    await page.getByLabel('Headline').fill('Hello');
    await page.getByLabel('Text', { exact: true }).fill(' \n ');
    await press(page, 'Save');
    expect(await page.locator('main').innerText()).toContain('Please choose at least one channel.');
    expect(await page.getByLabel('Headline').inputValue()).toBe('Hello');
    await page.goto(`${CONSOLE_URL}/app/stores/${store.accountId}/messages/settings`);
    await page.getByLabel('Quiet until').fill('');
    await press(page, 'Save');
    await page.getByText('Please fill in both times, or neither.').first().waitFor();
    await page.getByLabel('Quiet from').fill('20:00');
    await page.getByLabel('Quiet until').fill('09:30');
    await press(page, 'Save');
    await page.getByText('The quiet hours and the limit are saved.').waitFor();
    const { body } = await store.get(`${store.store}/message_settings`);
    expect(body).toEqual({ quiet_from: '20:00', quiet_to: '09:30', max_per_week: 2 });
    await page.context().close();
  });

  it('show nothing of another store', async () => {
    pageErrors.expect(/status of 404/);
    const otherStore = await service.newStore();
    const { body: announcement } = await otherStore.post<{ id: number }>(
      `${otherStore.store}/announcements`,
      { title: 'Secret', text: 'Of another store.' },
    );
    const { body: rule } = await otherStore.post<{ id: number }>(
      `${otherStore.store}/message_rules`,
      {
        kind: 'birthday',
        title: 'Secret',
        text: 'Of another store.',
      },
    );
    expect([announcement.id, rule.id]).toEqual([expect.any(Number), expect.any(Number)]);
    const page = await signInToConsole(browser, store, 'messages');
    for (const path of [`announcements/${announcement.id}`, `rules/${rule.id}`]) {
      const url = `${CONSOLE_URL}/app/stores/${store.accountId}/messages/${path}`;
      expect((await page.goto(url))?.status()).toBe(404);
      expect((await page.goto(`${url}/edit`))?.status()).toBe(404);
    }
    await page.context().close();
  });

  it.each([
    ['en', '2001:db8:1::1'],
    ['de', '2001:db8:2::1'],
    ['fr', '2001:db8:3::1'],
    ['es', '2001:db8:4::1'],
  ])(
    'are accessible in light and dark, fit narrow phones, and are small, in %s',
    async (locale, address) => {
      store = await service.newStore({ timeZone: 'Europe/Berlin', locale });
      // The limits of the pages are for each address.
      const page = await signInToConsole(browser, store, 'messages/announcements', {
        locale,
        extraHTTPHeaders: { 'x-forwarded-for': address },
      });
      const check = async (path: string, name: string) => {
        const url = `${CONSOLE_URL}/app/stores/${store.accountId}/messages/${path}`;
        expect([path, (await page.goto(url))?.status()]).toEqual([path, 200]);
        await expectAccessiblePage(page, `messages-${name}-${locale}`);
        await expectSmallPage(page);
      };
      await check('announcements', 'empty');
      await addHolders(store, 3);
      const { stamp } = await enrol(store, {
        rewards: [['Espresso', 5]],
        customer: { first_name: 'Maximiliane-Theodora', last_name: 'Freifrau von Hohenstein' },
      });
      await stamp(4);
      await eventually(
        () => store.get(`${store.store}/history`),
        ({ text }) => text.includes('stamp.earned'),
      );
      const add = async (announcement: object) =>
        (await store.post<{ id: number }>(`${store.store}/announcements`, announcement)).body.id;
      const long = await add({
        title: 'Donaudampfschifffahrtsgesellschaftskapitänsmützen',
        text: 'We are closed on Monday, because the whole team is on the way to the sea. '.repeat(
          3,
        ),
      });
      const sent = await add({ title: 'Open again 🎉', text: 'From eight.\nSee you!' });
      await store.post(`${store.store}/announcements/${sent}/send`, {});
      const { body: rule } = await store.post<{ id: number }>(`${store.store}/message_rules`, {
        kind: 'stamps_away',
        threshold: 1,
        title: 'Almost',
        text: 'One to go.',
      });
      await check('links', 'links');
      await check('announcements', 'list');
      await check('announcements/new', 'new');
      await check(`announcements/${long}`, 'draft');
      await check(`announcements/${long}/edit`, 'edit');
      await check(`announcements/${long}/send`, 'ask');
      await check(`announcements/${sent}`, 'begins');
      const nobody = await add({ title: 'Nobody', text: 'In this group.', min_stamps: 99 });
      await check(`announcements/${nobody}`, 'nobody');
      const { database } = service;
      await database.query(
        `insert into outgoing_messages (kind, account_id, announcement_id, customer_id, channel, due_at, give_up_at)
         select 'campaign', account_id, $1, id, 'email', now() + interval '2 hours', now() + interval '2 days' from customers where account_id = $2`,
        [sent, store.accountId],
      );
      await database.query(
        `update campaigns set state = 'sending' where kind = 'announcement' and id = $1`,
        [sent],
      );
      await check(`announcements/${sent}`, 'waiting');
      await database.query(
        `update outgoing_messages set state = 'skipped', channel = null, reason = 'no_consent', due_at = null,
           finished_at = now() where announcement_id = $1`,
        [sent],
      );
      await database.query(
        `update campaigns set state = 'sent' where kind = 'announcement' and id = $1`,
        [sent],
      );
      await check(`announcements/${sent}`, 'unreached');
      await database.query(
        `update outgoing_messages set state = 'sent', channel = 'email', reason = null
         where announcement_id = $1 and customer_id = (select max(customer_id) from outgoing_messages where announcement_id = $1)`,
        [sent],
      );
      await check(`announcements/${sent}?state=skipped`, 'results');
      await check('rules', 'rules');
      await check('rules/new', 'kinds');
      await check('rules/new?kind=inactive', 'new-rule');
      await check(`rules/${rule.id}`, 'rule');
      await check('settings', 'settings');
      await page.context().close();
    },
  );
});
