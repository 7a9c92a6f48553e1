import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Pool } from 'pg';
import type { AnnouncementJson } from '#outbound/campaigns/announcement.dto.js';
import { MessageSettingsService } from '#outbound/campaigns/message-settings.service.js';
import { MessageContexts } from '#outbound/campaigns/message-contexts.service.js';
import type { MessageRecipientJson } from '#outbound/campaigns/message-recipient.dto.js';
import type { MessageRuleJson } from '#outbound/campaigns/message-rule.dto.js';
import { OutgoingMessages } from '#outbound/messages/outgoing-messages.service.js';
import { Browser } from '../support/browser/browser.js';
import { MailServer } from '../support/emulators/mail-server.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { eventually } from '../support/jest/eventually.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';
import { stamp, startDispatcher } from '../support/services/webhook-dispatcher.js';

const SLOW = 300_000;
const ANY_TIME = { quiet_from: null, quiet_to: null };

let mails: MailServer;
let service: LocalService;

beforeAll(async () => {
  mails = await MailServer.start();
  service = await startService({ SMTP_URL: mails.url, MAIL_FROM: 'Inkpad <i@shop.example>' });
}, SLOW);
afterAll(async () => {
  await Promise.all([mails.goAway(), service.stop()]);
});

/** A time of day in UTC, some hours from now. */
const at = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString().slice(11, 16);
const quietNow = () => ({ quiet_from: at(-2), quiet_to: at(2) });

async function openShop() {
  const store = await service.newStore({ locale: 'en-DE' });
  await changeSettings(store, quietNow());
  return store;
}

async function changeSettings(store: Client, settings: object) {
  const { status } = await store.send('PATCH', `${store.store}/message_settings`, settings);
  expect(status).toBe(200);
}

const moveTo = (time_zone: string) => async (store: Client) => {
  const { status } = await store.send('PATCH', store.store, { account: { time_zone } });
  expect(status).toBe(200);
};

const addReader = (store: Client, options: Parameters<typeof enrol>[1] = {}) =>
  enrol(store, {
    ...options,
    email: `reader${store.accountId}@mail.example`,
    customer: { marketing_consent: true },
  });

describe('a message that a dispatcher has while the hours for which it waits change', () => {
  /** Enqueues a message to somebody, and claims it. */
  async function claim(store: Client) {
    const { customer } = await addReader(store);
    const draft = { title: 'Closed', text: 'Until Tuesday.', channels: ['email'] };
    const { body } = await store.post<AnnouncementJson>(`${store.store}/announcements`, draft);
    await service.database.query(
      `insert into outgoing_messages (kind, account_id, announcement_id, customer_id, channel, due_at, give_up_at)
       values ('campaign', $1, $2, $3, 'email', now(), now() + interval '1 day')`,
      [store.accountId, body.id, customer.id],
    );
    const queue = service.app.get(OutgoingMessages, { strict: false });
    const [job] = await queue.claim(1, 'campaign', 'email');
    if (!job) throw new Error('nothing was due');
    const context = await service.app.get(MessageContexts, { strict: false }).find(job.id);
    const wait = async () => {
      const until = new Date(Date.now() + 7_200_000);
      await queue.wait(job, until, { hours: context?.hours });
      const { rows } = await service.database.query<{ waits: boolean }>(
        `select due_at > now() + interval '1 hour' as waits from outgoing_messages where id = $1`,
        [job.id],
      );
      return rows[0]?.waits;
    };
    return { wait };
  }

  it.each<[string, (store: Client) => Promise<unknown>, boolean]>([
    ['waits while nothing changes', async () => undefined, true],
    ['waits after another setting', (store) => changeSettings(store, { max_per_week: 1 }), true],
    ['is due after other hours', (store) => changeSettings(store, ANY_TIME), false],
    ['is due after another time zone', moveTo('Asia/Dhaka'), false],
  ])('%s', async (_, change, waits) => {
    const store = await openShop();
    const { wait } = await claim(store);
    await change(store);
    expect(await wait()).toBe(waits);
  });

  it('waits by a row of settings also where none were saved', async () => {
    const { accountId } = await service.newStore();
    const settings = service.app.get(MessageSettingsService, { strict: false });
    expect(await settings.getStored(accountId)).toEqual(await settings.get(accountId));
    const { rowCount } = await service.database.query(
      'select from message_settings where account_id = $1',
      [accountId],
    );
    expect(rowCount).toBe(1);
  });

  it.each([
    ['message_settings', 'quiet_from = null, quiet_to = null'],
    ['accounts', `state = jsonb_set(state, '{timeZone}', '"Asia/Dhaka"')`],
  ])('is due after a change of %s that is committed meanwhile', async (table, change) => {
    const store = await openShop();
    const { wait } = await claim(store);
    const client = await service.app.get(Pool, { strict: false }).connect();
    const key = table === 'accounts' ? 'id' : 'account_id';
    try {
      await client.query('begin');
      await client.query(`update ${table} set ${change} where ${key} = $1`, [store.accountId]);
      const waits = wait();
      await eventually(
        async () =>
          (
            await service.database.query(
              `select from pg_stat_activity where wait_event_type = 'Lock' and query like '%outgoing_messages%'`,
            )
          ).rowCount,
        (count) => count === 1,
      );
      await client.query('commit');
      expect(await waits).toBe(false);
    } finally {
      client.release(true);
    }
  });
});

describe('a message of a rule that waits', () => {
  /** Lets somebody come within one stamp of the reward at five, and the message wait. */
  async function wait() {
    const store = await openShop();
    const { path } = await addReader(store, { card: { stamps_required: 10 }, rewards: [5] });
    const rule = { title: 'Almost', text: 'One more.', channels: ['email'], enabled: true };
    const { body } = await store.post<MessageRuleJson>(`${store.store}/message_rules`, {
      ...rule,
      kind: 'stamps_away',
      threshold: 1,
    });
    await stamp(store, path, 4);
    const rules = `${store.store}/message_rules/${body.id}`;
    const find = async () =>
      (await store.get<MessageRecipientJson[]>(`${rules}/recipients`)).body[0];
    await service.database.query(`update campaigns set due_at = now() where kind = 'rule'`);
    await eventually(find, (row) => Date.parse(row?.due_at ?? '') > Date.now() + 3_000_000);
    const end = () => eventually(find, (row) => row !== undefined && row.state !== 'queued');
    const isHers = ({ to }: { to: string }) => to === `reader${store.accountId}@mail.example`;
    return { store, path, rules, end, countMails: () => mails.received.filter(isHers).length };
  }

  beforeAll(async () => {
    await startDispatcher(service);
  }, SLOW);

  it(
    'is sent, once the hours have changed',
    async () => {
      const { store, end, countMails } = await wait();
      await changeSettings(store, ANY_TIME);
      expect([(await end())?.state, countMails()]).toEqual(['sent', 1]);
    },
    SLOW,
  );

  it(
    'is not sent once its reward is reached, although the card is nearly full',
    async () => {
      const { store, path, end, countMails } = await wait();
      await stamp(store, path, 5);
      await changeSettings(store, ANY_TIME);
      expect(await end()).toMatchObject({ state: 'skipped', reason: 'past' });
      expect(countMails()).toBe(0);
    },
    SLOW,
  );

  it(
    'is cancelled by turning the rule off',
    async () => {
      const { store, rules, end, countMails } = await wait();
      await store.send('PATCH', rules, { enabled: false });
      await changeSettings(store, ANY_TIME);
      expect(await end()).toMatchObject({ state: 'skipped', reason: 'cancelled' });
      expect(countMails()).toBe(0);
    },
    SLOW,
  );
});

describe('the pages of messages', () => {
  it('say of a message that is scheduled within the quiet hours when these end', async () => {
    const store = await openShop();
    await changeSettings(store, { quiet_from: '21:00', quiet_to: '08:00' });
    await addReader(store);
    const draft = { title: 'Closed', text: 'Until Tuesday.', channels: ['email'] };
    const { body } = await store.post<AnnouncementJson>(`${store.store}/announcements`, draft);
    const day = new Date(Date.now() + 86_400_000).toISOString().slice(0, 10);
    const path = `${store.store}/announcements/${body.id}/send`;
    expect((await store.post(path, { send_at: `${day}T03:30:00Z` })).status).toBe(200);
    const browser = await Browser.signedIn(service, store.email);
    const page = `/app/stores/${store.accountId}/messages/announcements/${body.id}`;
    const { text } = await browser.get(page);
    expect(text).toMatch(/It will be sent on [^<]*8:00/);
    expect(text).toContain(`value="${day}T03:30"`);
    const list = `/app/stores/${store.accountId}/messages/announcements`;
    expect((await browser.get(list)).text).toMatch(/\b0?8:00/);
  });

  it('show in the form of a rule somebody for whom there was an occasion, else a sample', async () => {
    const store = await openShop();
    const real = 'This is how one of the recipients gets it.';
    const { path } = await addReader(store, { card: { stamps_required: 10 }, rewards: [5] });
    const browser = await Browser.signedIn(service, store.email);
    const form = `/app/stores/${store.accountId}/messages/rules/new?kind=stamps_away`;
    expect((await browser.get(form)).text).not.toContain(real);
    await stamp(store, path, 4);
    const { text } = await eventually(
      () => browser.get(form),
      (response) => response.text.includes(real),
    );
    expect(text).toContain('4 of 10');
    // Longer ago than any time of the database.
    const inactive = form.replace('stamps_away', 'inactive');
    await browser.get(inactive);
    const rule = { kind: 'inactive', title: 'Hello', text: 'Come back.', channels: 'email' };
    const action = `/app/stores/${store.accountId}/messages/rules`;
    const { status } = await browser.post(action, { ...rule, threshold: '9999999' });
    expect(status).toBe(422);
  });
});
