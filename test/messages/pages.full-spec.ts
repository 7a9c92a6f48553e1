import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Browser } from '../support/browser/browser.js';
import { MailServer } from '../support/emulators/mail-server.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { eventually } from '../support/jest/eventually.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';
import { startDispatcher } from '../support/services/webhook-dispatcher.js';

/** Tests the pages on which a store writes to its customers, without scripts. */

type Store = Client & { email: string };

let mails: MailServer;
let service: LocalService;
let bare: LocalService;

beforeAll(async () => {
  mails = await MailServer.start();
  service = await startService({
    SMTP_URL: mails.url,
    MAIL_FROM: 'Inkpad <inkpad@shop.example>',
    SMS_URL: 'http://127.0.0.1:1/',
    SMS_ACCOUNT: 'account',
    SMS_TOKEN: 'token',
    SMS_FROM: '+15005550006',
  });
  bare = await startService();
});
afterAll(async () => {
  await Promise.all([mails.goAway(), service.stop(), bare.stop()]);
});

async function open(
  on = service,
  fields: object = {},
): Promise<{ store: Store; browser: Browser; pages: string }> {
  const store = await on.newStore(fields);
  // The tests run at night too.
  await store.send('PATCH', `${store.store}/message_settings`, {
    quiet_from: null,
    quiet_to: null,
  });
  const browser = await Browser.signedIn(on, store.email);
  return { store, browser, pages: `/app/stores/${store.accountId}/messages` };
}

async function addCustomer(store: Client, fields: object): Promise<void> {
  const { customer } = await enrol(store, { customer: fields });
  const { marketing_consent = false, sms_consent = false } = fields as Record<string, boolean>;
  await store.send('PATCH', `${store.store}/customers/${customer.id}`, {
    customer: { marketing_consent, sms_consent },
  });
}

async function write(store: Client, fields: object = {}): Promise<number> {
  const { body } = await store.post<{ id: number }>(`${store.store}/announcements`, {
    title: 'Open again',
    text: 'From eight.',
    ...fields,
  });
  return body.id;
}

/** Lets a dispatcher run until the page is as wanted. */
async function untilSent(
  browser: Browser,
  page: string,
  isReady: (text: string) => boolean,
): Promise<string> {
  const dispatcher = await startDispatcher(service);
  try {
    return await eventually(async () => (await browser.get(page)).text, isReady);
  } finally {
    await dispatcher.kill('SIGTERM');
  }
}

const countOf = (text: string, part: string) => text.split(part).length - 1;

describe('the messages of a store', () => {
  it('open as one list with a button to write one', async () => {
    const { browser, pages } = await open();
    const landing = await browser.get(pages);
    expect([landing.status, landing.location]).toEqual([303, `${pages}/announcements`]);
    const { text } = await browser.get(`${pages}/announcements`);
    expect(text).toContain('Write a message');
    const tabs = [
      ...text.matchAll(/<a href="[^"]*\/messages\/(\w+)"( aria-current="page")?>([^<]+)/g),
    ];
    expect(tabs.map(([, path, current, name]) => [path, Boolean(current), name])).toEqual([
      ['announcements', true, 'Messages'],
      ['rules', false, 'Automatic'],
      ['settings', false, 'Quiet hours'],
      ['links', false, 'Links'],
    ]);
  });

  it('offer no channel that the service has not set up', async () => {
    const { browser, pages } = await open(bare);
    for (const path of ['announcements/new', 'rules/new?kind=birthday']) {
      const { text } = await browser.get(`${pages}/${path}`);
      for (const channel of ['wallet', 'email', 'sms']) {
        expect(text).toMatch(new RegExp(`name="channels:${channel}" value="yes" disabled`));
      }
      expect(countOf(text, 'Not set up on this service.')).toBe(3);
      expect(text).toMatch(/name="channels:web_push" value="yes" checked/);
    }
  });

  it('cannot be sent while they would reach nobody, which the page explains', async () => {
    const { store, browser, pages } = await open(bare);
    await addCustomer(store, { marketing_consent: true });
    const page = `${pages}/announcements/${await write(store)}`;
    const { text } = await browser.get(page);
    expect(countOf(text, 'Nobody can get this message yet.')).toBe(1);
    expect(text).not.toContain('No card is in a wallet.');
    expect(countOf(text, 'Not set up on this service: Wallet, E-mail, and SMS.')).toBe(1);
    expect(text).not.toContain('Send now');
    expect(text).not.toContain('name="send_at"');
    expect((await browser.get(`${page}/send`)).location).toBe(page);
    const group = await write(store, { min_stamps: 99 });
    expect((await browser.get(`${pages}/announcements/${group}`)).text).toContain(
      'no customer is in this group',
    );
  });

  it('say before they are sent whom they reach, why not the others, and what that costs', async () => {
    const { store, browser, pages } = await open(service, { locale: 'en-DE' });
    await addCustomer(store, { marketing_consent: true });
    await addCustomer(store, { phone: '+4915112345678', email: null, sms_consent: true });
    await addCustomer(store, {});
    const id = await write(store, { channels: ['email', 'sms'], text: 'x'.repeat(200) });
    const page = `${pages}/announcements/${id}`;
    const { text } = await browser.get(page);
    expect(text).toContain('1: did not agree to get messages');
    expect(text).toMatch(/Your store can still send [\d,]+ e-mails in these 24 hours/);
    expect(text).toMatch(/2 SMS each: 2 SMS in all. Your store can still write to [\d,]+ people/);
    expect(text).toMatch(
      /Each person gets 2 SMS. \d+ characters in the last one, room for \d+ more/,
    );
    expect(text).toContain('It goes to numbers of these countries: Germany.');
    const question = (await browser.get(`${page}/send`)).text;
    expect(question).toContain('Send to 2 of 3 customers?');
    expect(question).toContain('Send to 2 customers</button>');
  });

  it('say before they are sent that an SMS reaches nobody in countries that the store sends none to', async () => {
    const { store, browser, pages } = await open();
    await addCustomer(store, { phone: '+4915112345678', email: null, sms_consent: true });
    const page = `${pages}/announcements/${await write(store, { channels: ['sms'] })}`;
    const { text } = await browser.get(page);
    expect(text).toContain('It goes to nobody: the settings of the store name no country.');
    expect(text).toContain('The store sends no SMS to the countries of these phone numbers');
    expect(text).toContain('1: the store sends no SMS to that country');
    expect(text).not.toContain('Send now');
  });

  it.each([
    ['an announcement', 'announcements', ''],
    ['a rule', 'rules', '&kind=birthday'],
  ])('show the e-mail of %s before it is saved, as it arrives', async (_, kind, more) => {
    const { store, browser, pages } = await open();
    await addCustomer(store, { marketing_consent: true });
    const form = `${pages}/${kind}/new?${more}`;
    const response = await browser.submit(form, `${pages}/${kind}`, {
      step: 'count',
      kind: 'birthday',
      title: 'Open again',
      text: 'From eight.\nSee you!',
      'channels:email': 'yes',
    });
    expect(response.status).toBe(200);
    for (const part of [
      'Open again</p>',
      '<p dir="auto">From eight.</p>',
      '<p dir="auto">See you!</p>',
      'Open your card</td>',
      'because you have a card from',
      '<u>Stop messages</u>',
      'src="/img/strip/',
    ]) {
      expect(response.text).toContain(part);
    }
    expect((await browser.get(`${pages}/${kind}`)).text).not.toContain('Open again');
  });

  it('show afterwards what happened, never that they were sent when nobody was reached', async () => {
    const { store, browser, pages } = await open();
    await addCustomer(store, { first_name: 'Reached', marketing_consent: true });
    await addCustomer(store, { first_name: 'Unreached' });
    const page = `${pages}/announcements/${await write(store, { channels: ['email'] })}`;
    await browser.get(`${page}/send`);
    expect((await browser.submit(`${page}/send`, `${page}/send`)).location).toBe(
      `${page}?done=sent`,
    );
    const sending = (await browser.get(`${page}?done=sent`)).text;
    expect(sending).toContain('The message is being sent.');
    expect(sending).toContain('id="message-progress"');
    const text = await untilSent(browser, page, (text) => text.includes('Sent to 1 of 2'));
    expect(text).toContain('<span class="tag good">Sent to 1 of 2</span>');
    expect(text).not.toContain('id="message-progress"');
    expect(text).toContain('1: did not agree to get messages');
    const skipped = (await browser.get(`${page}?state=skipped`)).text;
    expect(skipped).toContain('Unreached');
    expect(skipped).not.toMatch(/>Reached</);
    expect(skipped).toMatch(/state=skipped#recipients" aria-current="page">Not sent</);

    const none = await write(store, { channels: ['sms'] });
    await store.post(`${store.store}/announcements/${none}/send`, {});
    const other = `${pages}/announcements/${none}`;
    expect(await untilSent(browser, other, (text) => text.includes('Sent to 0 of 2'))).toContain(
      '<span class="tag warn">Sent to 0 of 2</span>',
    );
    expect((await browser.get(`${pages}/announcements`)).text).toContain(
      '<span class="tag warn">Sent to 0 of 2</span>',
    );
  });

  it('keep the time of the day of an audience, unless another day is chosen', async () => {
    const { store, browser, pages } = await open();
    const id = await write(store, { inactive_since: '2026-03-01T15:30:00Z' });
    const form = `${pages}/announcements/${id}/edit`;
    const change = async (values: Record<string, string>) => {
      expect((await browser.submit(form, form, values)).location).toContain('done=saved');
      const { body } = await store.get<{ title: string; inactive_since: string }>(
        `${store.store}/announcements/${id}`,
      );
      return [body.title, body.inactive_since];
    };
    const day = '2026-03-01';
    const since = '2026-03-01T15:30:00.000Z';
    const entered = { text: 'From eight.', 'channels:email': 'yes' };
    expect(await change({ ...entered, title: 'Again', inactive_since: day })).toEqual([
      'Again',
      since,
    ]);
    expect(await change({ ...entered, title: 'Again', inactive_since: '2026-03-02' })).toEqual([
      'Again',
      '2026-03-02T00:00:00.000Z',
    ]);
  });

  it('say why they wait, and until when', async () => {
    const { store, browser, pages } = await open();
    await addCustomer(store, { marketing_consent: true });
    const at = (hours: number) =>
      new Date(Date.now() + hours * 3_600_000).toISOString().slice(11, 16);
    await store.send('PATCH', `${store.store}/message_settings`, {
      quiet_from: at(-2),
      quiet_to: at(2),
    });
    const id = await write(store, { channels: ['email'] });
    await store.post(`${store.store}/announcements/${id}/send`, {});
    const page = `${pages}/announcements/${id}`;
    await untilSent(browser, page, (one) => one.includes('quiet hours, '));
    // Before, it waited for something else.
    await service.database.query(
      `update outgoing_messages set reason = 'email_limit', due_at = now()
       where announcement_id = $1 and state = 'queued'`,
      [id],
    );
    expect((await browser.get(page)).text).not.toContain('quiet hours, ');
    const text = await untilSent(browser, page, (one) => one.includes('quiet hours, '));
    expect(text).toContain('1 waits for the end of the quiet hours');
    expect(text).toContain('0 of 1 are done');
    expect(text).toMatch(/class="tag[^"]*">Waits until /);
  });
});
