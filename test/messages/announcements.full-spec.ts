import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { clock } from '#platform/kernel/clock.js';
import type { AnnouncementJson } from '#outbound/campaigns/announcement.dto.js';
import type { MessageRecipientJson } from '#outbound/campaigns/message-recipient.dto.js';
import type { MessageRuleJson } from '#outbound/campaigns/message-rule.dto.js';
import { UNNAMED_STORE } from '#loyalty/accounts/account.js';
import type { CardJson } from '#loyalty/cards/card.dto.js';
import type { CreatedCustomerJson } from '#loyalty/customers/customer.dto.js';
import { appleWorld, type AppleWorld } from '../support/emulators/apple/world.js';
import { Browser } from '../support/browser/browser.js';
import { findObject, listNotifications, saveToGoogle } from '../support/emulators/google/passes.js';
import { startGoogleWallet, type GoogleWallet } from '../support/emulators/google/server.mjs';
import { MailServer } from '../support/emulators/mail-server.js';
import { SmsProvider } from '../support/emulators/sms/sms-provider.js';
import { startPushService, type PushService } from '../support/emulators/web-push/server.mjs';
import { eventually } from '../support/jest/eventually.js';
import type { Program } from '../support/services/program.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';
import { startDispatcher } from '../support/services/webhook-dispatcher.js';

const SLOW = 300_000;
const ORIGIN = 'https://cards.example';

let world: AppleWorld;
let google: GoogleWallet;
let pushes: PushService;
let mails: MailServer;
let provider: SmsProvider;
let service: LocalService;
let dispatcher: Program;
let people = 0;

beforeAll(async () => {
  [world, google, pushes, mails, provider] = await Promise.all([
    appleWorld(),
    startGoogleWallet(),
    startPushService(),
    MailServer.start(),
    SmsProvider.start(),
  ]);
  service = await startService({
    ...google.environment,
    ...world.settings,
    ...provider.settings,
    PUBLIC_URL: ORIGIN,
    WEB_PUSH_ALLOW_INSECURE_ENDPOINTS: 'true',
    SMTP_URL: mails.url,
    MAIL_FROM: 'Inkpad <inkpad@shop.example>',
  });
  dispatcher = await startDispatcher(service);
}, SLOW);
afterAll(async () => {
  await service.stop();
  await Promise.all([
    world.apns.stop(),
    google.stop(),
    pushes.stop(),
    mails.goAway(),
    provider.stop(),
  ]);
}, SLOW);

type Shop = { store: Client & { email: string }; card: CardJson };
type Holder = { id: number; cardId: number; uuid: string; appleUrl: string };

/** A shop that writes at any time of the day. */
async function openShop(card: object = {}): Promise<Shop> {
  const store = await service.newStore({ locale: 'en-DE' });
  const { body } = await store.post<CardJson>(`${store.store}/cards`, {
    card: { name: 'Coffee', stamps_required: 3, ...card },
  });
  const quiet = { quiet_from: null, quiet_to: null };
  expect((await store.send('PATCH', `${store.store}/message_settings`, quiet)).status).toBe(200);
  return { store, card: body };
}

async function addHolder({ store, card }: Shop, fields: object = {}): Promise<Holder> {
  const { status, body } = await store.post<CreatedCustomerJson>(`${store.store}/customers`, {
    customer: { first_name: 'Anna', email: `p${++people}@people.example`, ...fields },
    card_id: card.id,
  });
  expect(status).toBe(201);
  if (!body.customer_card) throw new Error('nobody was enrolled');
  const { id: cardId, uuid, apple_wallet_url: appleUrl } = body.customer_card;
  return { id: body.id, cardId, uuid, appleUrl };
}

async function announce(store: Client, fields: object = {}): Promise<number> {
  const { body } = await store.post<AnnouncementJson>(`${store.store}/announcements`, {
    title: 'Closed on Monday',
    text: 'We are back on Tuesday.',
    ...fields,
  });
  const sent = await store.post(`${store.store}/announcements/${body.id}/send`, {});
  expect(sent.status).toBe(200);
  return body.id;
}

const waitUntilSent = (store: Client, id: number) =>
  eventually(
    async () => (await store.get<AnnouncementJson>(`${store.store}/announcements/${id}`)).body,
    ({ state }) => state === 'sent',
  );

async function listRecipients(
  store: Client,
  path: string,
): Promise<Map<number, MessageRecipientJson>> {
  const { body } = await store.get<MessageRecipientJson[]>(`${store.store}/${path}/recipients`);
  return new Map(body.map((recipient) => [recipient.customer_id, recipient]));
}

const waitForEntries = (store: Client, customerId: number, count: number) =>
  eventually(
    async () => {
      const path = `${store.store}/history?type=customer.messaged&customer_id=${customerId}`;
      return (await store.get<unknown[]>(path)).body;
    },
    (entries) => entries.length >= count,
  );

/** Saves the pass, of which Google notifies the service. */
async function saveAtGoogle(store: Client, { uuid }: Holder): Promise<void> {
  await saveToGoogle(google, store, uuid);
  const objectId = findObject(google, uuid)?.id ?? '';
  const body = google.envelope({ classId: 'any', objectId, eventType: 'save' });
  const response = await fetch(`${service.baseUrl}/wallet/google/callback`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  });
  expect(response.ok).toBe(true);
}

async function subscribe({ uuid }: Holder) {
  const html = await (await fetch(`${service.baseUrl}/passes/${uuid}`)).text();
  const [, key = ''] = /data-push-key="([\w-]+)"/.exec(html) ?? [];
  const browser = pushes.subscribe(key);
  const response = await fetch(`${service.baseUrl}/passes/${uuid}/push`, {
    method: 'POST',
    headers: { origin: ORIGIN, 'content-type': 'application/json' },
    body: JSON.stringify(browser.subscription),
  });
  expect(response.status).toBe(204);
  return browser;
}

describe('an announcement', () => {
  it('is created at one moment, also when the clock goes on meanwhile', async () => {
    const { store } = await openShop();
    let now = clock.getMs();
    const ticking = jest.spyOn(clock, 'getMs').mockImplementation(() => now++);
    const fields = { title: 'Closed', text: 'Until Tuesday.' };
    const created = await store
      .post<AnnouncementJson>(`${store.store}/announcements`, fields)
      .finally(() => ticking.mockRestore());
    expect(created.status).toBe(201);
    const { body } = await store.get<AnnouncementJson>(
      `${store.store}/announcements/${created.body.id}`,
    );
    expect(body).toEqual(created.body);
  });

  it(
    'reaches each holder by the first channel that can, and nobody else',
    async () => {
      const shop = await openShop();
      const { store } = shop;
      const phone = world.phone(service.baseUrl);
      const apple = await addHolder(shop, { email: 'both@mail.example', marketing_consent: true });
      const serial = await phone.add(apple.appleUrl);
      const android = await addHolder(shop);
      await saveAtGoogle(store, android);
      const surfer = await addHolder(shop);
      const browser = await subscribe(surfer);
      const reader = await addHolder(shop, { email: 'r@mail.example', marketing_consent: true });
      const texter = await addHolder(shop, { phone: '+4915112345678', sms_consent: true });
      const foreigner = await addHolder(shop, { phone: '+12025550143', sms_consent: true });
      const silent = await addHolder(shop, { email: 'no@mail.example' });
      const stopped = await addHolder(shop, { email: 's@mail.example', marketing_consent: true });
      const stop = `${service.baseUrl}/passes/${stopped.uuid}/messages`;
      await fetch(stop, { method: 'POST', redirect: 'manual', body: new URLSearchParams() });

      const id = await announce(store);
      const { counts } = await waitUntilSent(store, id);
      expect(counts).toEqual({
        people: 8,
        queued: 0,
        sent: 5,
        failed: 0,
        skipped: 3,
        sent_by: { wallet: 2, web_push: 1, email: 1, sms: 1 },
      });
      const recipients = await listRecipients(store, `announcements/${id}`);
      const outcome = ({ id: customerId }: Holder) => {
        const { state, channel, reason } = recipients.get(customerId) ?? {};
        return [state, channel, reason];
      };
      expect(outcome(apple)).toEqual(['sent', 'wallet', null]);
      expect(outcome(texter)).toEqual(['sent', 'sms', null]);
      expect(outcome(foreigner)).toEqual(['skipped', null, 'country']);
      expect(outcome(silent)).toEqual(['skipped', null, 'no_consent']);
      expect(outcome(stopped)).toEqual(['skipped', null, 'stopped']);

      const [message] = await eventually(
        () => phone.messages,
        ({ length }) => length > 0,
      );
      expect(message).toContain('We are back on Tuesday.');
      expect(JSON.stringify(phone.shows(serial).pass)).toContain('Closed on Monday');
      const [notification] = await eventually(
        () => listNotifications(google, android.uuid),
        ({ length }) => length > 0,
      );
      expect(notification).toMatchObject({ kind: 'message', text: 'We are back on Tuesday.' });
      const [push] = await eventually(
        () => browser.messages,
        ({ length }) => length > 0,
      );
      expect(push?.text).toContain('Closed on Monday');
      const [mail, ...otherMails] = mails.received.filter(({ to }) => to.endsWith('mail.example'));
      expect([mail?.to, mail?.subject, otherMails]).toEqual([
        'r@mail.example',
        'Closed on Monday',
        [],
      ]);
      expect(mail?.headers).toContain(
        `List-Unsubscribe: <${ORIGIN}/passes/${reader.uuid}/messages>`,
      );
      expect(provider.to('+4915112345678')).toHaveLength(1);
      expect(provider.to('+12025550143')).toEqual([]);

      await waitForEntries(store, reader.id, 1);
      const customer = `${store.store}/customers/${reader.id}`;
      const readExport = async () =>
        JSON.stringify((await store.get<object>(`${customer}/export`)).body);
      expect(await readExport()).toContain('We are back on Tuesday.');
      expect((await store.post(`${customer}/erase`)).status).toBe(204);
      await waitForEntries(store, reader.id, 1);
      expect(await readExport()).not.toContain('We are back on Tuesday.');
    },
    SLOW,
  );

  it('names the card by e-mail and SMS while nobody has named the store', async () => {
    const shop = await openShop();
    const { store } = shop;
    const name = { account: { name: UNNAMED_STORE } };
    expect((await store.send('PATCH', store.store, name)).status).toBe(200);
    const [email, phone] = ['unnamed@mail.example', '+4915112345679'];
    await addHolder(shop, { email, marketing_consent: true });
    await addHolder(shop, { email: null, phone, sms_consent: true });
    await waitUntilSent(store, await announce(store, { channels: ['email', 'sms'] }));
    const mail = mails.received.find(({ to }) => to === email);
    const [sms] = provider.to(phone);
    expect(mail?.from).toBe('Coffee <inkpad@shop.example>');
    expect(sms?.body).toContain('Coffee: We are back on Tuesday.');
    expect(`${mail?.text} ${sms?.body}`).not.toContain(UNNAMED_STORE);
  });

  it(
    'waits while the server of Apple, Google or the browser does not accept it, and the pages say so',
    async () => {
      const shop = await openShop();
      const { store } = shop;
      const phone = world.phone(service.baseUrl);
      const apple = await addHolder(shop);
      await phone.add(apple.appleUrl);
      const android = await addHolder(shop);
      await saveAtGoogle(store, android);
      const surfer = await addHolder(shop);
      const browser = await subscribe(surfer);
      const owner = await Browser.signedIn(service, store.email);
      const pages = `/app/stores/${store.accountId}/messages/announcements`;
      const readPages = async (id: number) =>
        Promise.all([pages, `${pages}/${id}`].map(async (path) => (await owner.get(path)).text));
      const listArrivals = async (id: number) => {
        const recipients = await listRecipients(store, `announcements/${id}`);
        return [apple, android, surfer].map((holder) => recipients.get(holder.id)?.arrival);
      };
      await Promise.all([world.apns.stop(), google.stopListening()]);
      pushes.respondWith(() => ({ status: 503 }));
      let id: number;
      try {
        id = await announce(store, { channels: ['wallet', 'web_push'] });
        await waitUntilSent(store, id);
        await eventually(
          () => listArrivals(id),
          (all) => all.every((arrival) => arrival === 'pending'),
        );
        const [list = '', page = ''] = await readPages(id);
        expect(list).toContain('Sent to 0 of 3');
        expect(page).toContain('Sent to 0 of 3');
        expect(page).toContain('3: the server of Apple, Google or the browser has not accepted it');
        expect(page.match(/<span class="tag warn">Not sent yet</g)).toHaveLength(3);
        expect(page).not.toContain('<dt>Wallet</dt>');
      } finally {
        pushes.respondWith(undefined);
        await Promise.all([world.apns.restart(), google.listenAgain()]);
      }
      await eventually(
        () => listArrivals(id),
        (all) => all.every((arrival) => arrival === null),
      );
      const [list = '', page = ''] = await readPages(id);
      expect(list).toContain('Sent to 3 of 3');
      expect(page).not.toContain('has not accepted it');
      expect(phone.messages).toHaveLength(1);
      expect(listNotifications(google, android.uuid)).toHaveLength(1);
      expect(browser.messages).toHaveLength(1);
    },
    SLOW,
  );

  it(
    'that the push service refuses keeps nobody from the notification of their stamp',
    async () => {
      const shop = await openShop();
      const { store } = shop;
      const holder = await addHolder(shop);
      const browser = await subscribe(holder);
      let [requestCount, isAway] = [0, true];
      pushes.respondWith(() => {
        requestCount++;
        if (isAway) return { status: 503 };
        // The message comes first.
        return requestCount === 1 ? { status: 400 } : undefined;
      });
      try {
        await announce(store, { channels: ['web_push'] });
        await eventually(
          () => requestCount,
          (count) => count > 0,
        );
        const path = `${store.store}/customers/${holder.id}/customer_cards/${holder.cardId}`;
        expect((await store.post(`${path}/stamp`, { stamps: 1 })).status).toBe(200);
        [requestCount, isAway] = [0, false];
        const [push] = await eventually(
          () => browser.messages,
          ({ length }) => length > 0,
        );
        expect(push?.text).toContain('1 of 3');
        expect([requestCount, browser.messages.length]).toEqual([2, 1]);
      } finally {
        pushes.respondWith(undefined);
      }
    },
    SLOW,
  );

  it(
    'is on a Google pass without a notification once the quota of the pass is used up, and says so',
    async () => {
      const shop = await openShop();
      const { store } = shop;
      const holder = await addHolder(shop);
      await saveAtGoogle(store, holder);
      const ids: number[] = [];
      for (const title of ['First', 'Second', 'Third', 'Fourth']) {
        const id = await announce(store, { title, text: `${title} message` });
        await waitUntilSent(store, id);
        const object = await eventually(
          () => findObject(google, holder.uuid),
          (record) => JSON.stringify(record ?? {}).includes(`${title} message`),
        );
        expect(object).toBeDefined();
        ids.push(id);
      }
      const listReasons = () =>
        Promise.all(
          ids.map(async (id) => {
            const recipients = await listRecipients(store, `announcements/${id}`);
            return recipients.get(holder.id)?.reason;
          }),
        );
      // Recorded after the response of Google.
      const reasons = await eventually(listReasons, (all) => all.includes('silent'));
      expect(reasons).toEqual([null, null, null, 'silent']);
      expect(listNotifications(google, holder.uuid)).toHaveLength(3);
    },
    SLOW,
  );

  it(
    'waits for the end of the quiet hours, and goes out when they are changed',
    async () => {
      const shop = await openShop();
      const { store } = shop;
      const email = 'quiet@mail.example';
      await addHolder(shop, { email, marketing_consent: true });
      const clock = (minutes: number) =>
        new Date(Date.now() + minutes * 60_000).toISOString().slice(11, 16);
      const settings = `${store.store}/message_settings`;
      await store.send('PATCH', store.store, { account: { time_zone: 'UTC' } });
      await store.send('PATCH', settings, { quiet_from: clock(-60), quiet_to: clock(60) });
      const id = await announce(store);
      const path = `announcements/${id}`;
      const [waiting] = await eventually(
        async () => [...(await listRecipients(store, path)).values()],
        ([first]) => Date.parse(first?.due_at ?? '') > Date.now() + 50 * 60_000,
      );
      expect(waiting?.state).toBe('queued');
      expect(mails.received.some(({ to }) => to === email)).toBe(false);
      await store.send('PATCH', settings, { quiet_from: null, quiet_to: null });
      await service.database.query(
        'update outgoing_messages set due_at = now() where announcement_id = $1',
        [id],
      );
      await service.database.query(
        `update campaigns set due_at = now() where kind = 'announcement' and id = $1`,
        [id],
      );
      await waitUntilSent(store, id);
      expect(mails.received.filter(({ to }) => to === email)).toHaveLength(1);
    },
    SLOW,
  );

  it(
    'is not looked at again before its next message is due',
    async () => {
      const shop = await openShop();
      const { store } = shop;
      await addHolder(shop, { email: 'asleep@mail.example', marketing_consent: true });
      const clock = (minutes: number) =>
        new Date(Date.now() + minutes * 60_000).toISOString().slice(11, 16);
      await store.send('PATCH', `${store.store}/message_settings`, {
        quiet_from: clock(-60),
        quiet_to: clock(60),
      });
      await service.database.query(`
        create table rounds (campaign_id bigint not null);
        create function count_round() returns trigger language plpgsql security definer as $$
        begin
          insert into rounds values (new.id);
          return null;
        end $$;
        create trigger count_rounds after update of attempts on campaigns
          for each row execute function count_round()`);
      const countRounds = async (id: number) =>
        (await service.database.query('select from rounds where campaign_id = $1', [id])).rowCount;
      const announceAsleep = async () => {
        const id = await announce(store);
        await eventually(
          async () =>
            (
              await service.database.query(
                `select from campaigns c join outgoing_messages m on m.announcement_id = c.id
                 where c.kind = 'announcement' and c.id = $1 and c.due_at > now() + interval '50 minutes'
                   and date_trunc('milliseconds', m.due_at) = c.due_at`,
                [id],
              )
            ).rowCount,
          (count) => count === 1,
        );
        return id;
      };
      try {
        const id = await announceAsleep();
        const rounds = await countRounds(id);
        // By the time that another one was addressed, and looked at until its message waited.
        for (let i = 0; i < 3; i++) await announceAsleep();
        expect(await countRounds(id)).toBe(rounds);
      } finally {
        await service.database.query('drop trigger count_rounds on campaigns');
      }
    },
    SLOW,
  );

  it(
    'comes once to each holder although the dispatcher is killed again and again',
    async () => {
      const shop = await openShop();
      const { store } = shop;
      const count = 150;

      for (let i = 0; i < count; i++) {
        const email = `k${i}@killed.example`;
        await addHolder(shop, { email, marketing_consent: true });
      }
      const findSent = () => mails.received.filter(({ to }) => to.endsWith('@killed.example'));
      const id = await announce(store, { channels: ['email'] });
      for (const part of [10, 60, 110]) {
        await eventually(
          () => findSent().length,
          (sent) => sent >= part,
        );
        await dispatcher.kill('SIGKILL');
        dispatcher = await startDispatcher(service);
      }
      const { counts } = await waitUntilSent(store, id);
      const addresses = findSent().map(({ to }) => to);
      expect(new Set(addresses).size).toBe(addresses.length);
      // What was being handed over when a process was killed, of 16 at once, may have arrived or not, and is not sent again.
      expect(counts.sent + counts.failed).toBe(count);
      expect(counts.failed).toBeLessThanOrEqual(3 * 16);
      expect(addresses.length).toBeGreaterThanOrEqual(counts.sent);
      const recorded = async () => {
        const { rows } = await service.database.query<{ count: number }>(
          `select count(*) as count from history where account_id = $1 and name = 'customer.messaged'`,
          [store.accountId],
        );
        return Number(rows[0]?.count);
      };
      expect(await eventually(recorded, (count) => count >= counts.sent)).toBe(counts.sent);
    },
    SLOW,
  );

  it(
    'is not sent again where the mail server has the text and says nothing',
    async () => {
      const shop = await openShop();
      await addHolder(shop, { email: 'silent@mail.example', marketing_consent: true });
      mails.hang(true);
      try {
        const id = await announce(shop.store, { channels: ['email'] });
        const { counts } = await waitUntilSent(shop.store, id);
        expect(counts).toMatchObject({ sent: 0, failed: 1 });
        const [recipient] = (await listRecipients(shop.store, `announcements/${id}`)).values();
        expect(recipient).toMatchObject({ state: 'failed', reason: 'unknown', due_at: null });
      } finally {
        mails.hang(false);
      }
    },
    SLOW,
  );
});

describe('a message rule', () => {
  const createRule = async (store: Client, fields: object) => {
    const { status, body } = await store.post<MessageRuleJson>(`${store.store}/message_rules`, {
      title: 'Hello',
      text: 'Come by',
      channels: ['email'],
      enabled: true,
      ...fields,
    });
    expect(status).toBe(201);
    return body;
  };
  /** Lets rules look at the last days once more, as if they had been enabled before. */
  const lookBack = (store: Client, days: number) =>
    service.database.query(
      `update campaigns set checked_until = now() - make_interval(days => $2), due_at = now(), process = null
       where kind = 'rule' and account_id = $1`,
      [store.accountId, days],
    );

  it(
    'sends when a stamp brings a card within reach of its reward, once',
    async () => {
      const shop = await openShop();
      const { store } = shop;
      const email = 'near@mail.example';
      const holder = await addHolder(shop, { email, marketing_consent: true });
      await createRule(store, { kind: 'stamps_away', threshold: 1, title: 'One more' });
      const stamp = `${store.store}/customers/${holder.id}/customer_cards/${holder.cardId}/stamp`;
      await store.post(stamp, { stamps: 2 });
      await lookBack(store, 0);
      const isHers = ({ to }: { to: string }) => to === email;
      await eventually(
        () => mails.received.filter(isHers).length,
        (sent) => sent > 0,
      );
      await lookBack(store, 0);
      await waitForEntries(store, holder.id, 1);
      expect(mails.received.filter(isHers).map(({ subject }) => subject)).toEqual(['One more']);
    },
    SLOW,
  );

  it(
    'sends for an unused reward, an absence and a birthday, at most so many a week',
    async () => {
      const shop = await openShop({ stamps_required: 2 });
      const { store, card } = shop;
      await store.post(`${store.store}/rewards`, {
        reward: { card_id: card.id, name: 'Coffee', stamps_required: 2 },
      });
      const today = new Date().toISOString().slice(5, 10);
      await store.send('PATCH', store.store, { account: { time_zone: 'UTC' } });
      const email = 'busy@mail.example';
      const holder = await addHolder(shop, {
        email,
        marketing_consent: true,
        birthday: `1990-${today === '02-29' ? '02-28' : today}`,
      });
      const stamp = `${store.store}/customers/${holder.id}/customer_cards/${holder.cardId}/stamp`;
      expect((await store.post(stamp, { stamps: 2 })).status).toBe(200);
      await createRule(store, { kind: 'reward_unused', threshold: 1, title: 'Your reward' });
      await createRule(store, { kind: 'inactive', threshold: 1, title: 'We miss you' });
      const birthday = await createRule(store, { kind: 'birthday', title: 'Happy birthday' });
      await eventually(
        async () => {
          const { rows } = await service.database.query(
            `select from history where account_id = $1 and name = 'reward.unlocked'`,
            [store.accountId],
          );
          return rows.length;
        },
        (count) => count > 0,
      );
      // Yesterday, for the rules: the customer as well, who has a birthday today only if they were there before.
      await service.database.query(
        `update history set latest_recorded_at = latest_recorded_at - interval '25 hours'`,
      );
      await service.database.query(
        `update customers set state = jsonb_set(state, '{createdAt}', '"2020-01-01T00:00:00.000Z"') where id = $1`,
        [holder.id],
      );
      await lookBack(store, 2);
      const listAll = async () => {
        const { rows } = await service.database.query<{
          title: string;
          state: string;
          reason: string;
        }>(
          `select title, state, reason from outgoing_messages where kind = 'campaign' and customer_id = $1 order by title`,
          [holder.id],
        );
        return rows;
      };
      const all = await eventually(
        listAll,
        (rows) => rows.length === 3 && rows.every(({ state }) => state !== 'queued'),
      );
      expect(all.filter(({ state }) => state === 'sent')).toHaveLength(2);
      expect(all.filter(({ reason }) => reason === 'weekly_limit')).toHaveLength(1);
      await lookBack(store, 2);
      const { body } = await store.get<MessageRuleJson>(
        `${store.store}/message_rules/${birthday.id}`,
      );
      expect(body.counts.people).toBe(1);
    },
    SLOW,
  );

  it(
    'sends nothing for what is over, although another rule fails',
    async () => {
      const shop = await openShop({ stamps_required: 2 });
      const { store, card } = shop;
      await store.post(`${store.store}/rewards`, {
        reward: { card_id: card.id, name: 'Coffee', stamps_required: 2 },
      });
      await store.send('PATCH', store.store, { account: { time_zone: 'UTC' } });
      const day = new Date(Date.now() - 4 * 24 * 60 * 60_000).toISOString().slice(5, 10);
      const email = 'over@mail.example';
      const birthday = `1988-${day}`;
      const holder = await addHolder(shop, { email, marketing_consent: true, birthday });
      const path = `${store.store}/customers/${holder.id}/customer_cards/${holder.cardId}`;
      expect((await store.post(`${path}/stamp`, { stamps: 2 })).status).toBe(200);
      await eventually(
        async () => {
          const { rows } = await service.database.query(
            `select from history where account_id = $1 and name = 'reward.unlocked'`,
            [store.accountId],
          );
          return rows.length;
        },
        (count) => count > 0,
      );
      await service.database.query(
        `update history set latest_recorded_at = latest_recorded_at - interval '25 hours'`,
      );
      await store.post(`${path}/adjust`, { stamps: -1, reason: 'Counted twice' });
      await service.database.query(
        `update customers set state = jsonb_set(state, '{createdAt}', '"2020-01-01T00:00:00.000Z"') where id = $1`,
        [holder.id],
      );
      // Checked first, as it has waited the longest. Its store does not exist.
      await service.database.query(
        `insert into campaigns (id, kind, account_id, state, title, text, channels, trigger, created_at, updated_at,
           checked_until, due_at)
         values (nextval('campaigns_id'), 'rule', 999999999, 'enabled', 'a', 'b', '{email}', '{"kind": "birthday"}',
           now(), now(), now(), now() - interval '1 year')`,
      );
      await createRule(store, { kind: 'reward_unused', threshold: 1, title: 'Your reward' });
      await createRule(store, { kind: 'birthday', title: 'Happy birthday' });
      await lookBack(store, 6);
      const listAll = async () =>
        (
          await service.database.query<{ title: string; state: string; reason: string }>(
            `select title, state, reason from outgoing_messages where kind = 'campaign' and customer_id = $1 order by title`,
            [holder.id],
          )
        ).rows;
      const all = await eventually(
        listAll,
        (rows) => rows.length === 2 && rows.every(({ state }) => state !== 'queued'),
      );
      expect(all).toEqual([
        { title: 'Happy birthday', state: 'skipped', reason: 'past' },
        { title: 'Your reward', state: 'skipped', reason: 'past' },
      ]);
      expect(mails.received.some(({ to }) => to === email)).toBe(false);
    },
    SLOW,
  );
});
