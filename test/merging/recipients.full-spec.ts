import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { AnnouncementJson } from '#outbound/campaigns/announcement.dto.js';
import type { MessageRecipientJson } from '#outbound/campaigns/message-recipient.dto.js';
import type { MessageRuleJson } from '#outbound/campaigns/message-rule.dto.js';
import type { CardJson } from '#loyalty/cards/card.dto.js';
import type { CreatedCustomerJson } from '#loyalty/customers/customer.dto.js';
import { MailServer } from '../support/emulators/mail-server.js';
import { eventually } from '../support/jest/eventually.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';
import { startDispatcher } from '../support/services/webhook-dispatcher.js';

const SLOW = 300_000;

let mails: MailServer;
let service: LocalService;
let people = 0;

beforeAll(async () => {
  mails = await MailServer.start();
  service = await startService({
    PUBLIC_URL: 'https://cards.example',
    SMTP_URL: mails.url,
    MAIL_FROM: 'Inkpad <inkpad@shop.example>',
  });
  await startDispatcher(service);
}, SLOW);
afterAll(async () => {
  await service.stop();
  await mails.goAway();
}, SLOW);

type Holder = { id: number; cardId: number; email: string };
type Shop = { store: Client; cards: [number, number] };

/** Opens a shop with two cards, whose messages wait for the end of the quiet hours. */
async function openShop(): Promise<Shop> {
  const store = await service.newStore({ locale: 'en-DE', timeZone: 'UTC' });
  const addCard = async () =>
    (
      await store.post<CardJson>(`${store.store}/cards`, {
        card: { name: 'Coffee', stamps_required: 9 },
      })
    ).body.id;
  await setQuietHours(store, { quiet_from: getClock(-60), quiet_to: getClock(60) });
  return { store, cards: [await addCard(), await addCard()] };
}

function getClock(minutes: number): string {
  return new Date(Date.now() + minutes * 60_000).toISOString().slice(11, 16);
}

async function setQuietHours(store: Client, quiet: object): Promise<void> {
  expect((await store.send('PATCH', `${store.store}/message_settings`, quiet)).status).toBe(200);
}

async function addHolder({ store }: Shop, card: number, fields: object = {}): Promise<Holder> {
  const email = `p${++people}@people.example`;
  const customer = { first_name: 'Anna', email, marketing_consent: true, ...fields };
  const { status, body } = await store.post<CreatedCustomerJson>(`${store.store}/customers`, {
    customer,
    card_id: card,
  });
  expect(status).toBe(201);
  return { id: body.id, cardId: body.customer_card?.id ?? 0, email };
}

async function merge({ store }: Shop, from: Holder, into: Holder): Promise<void> {
  const path = `${store.store}/customers/${into.id}/merge`;
  expect((await store.post(path, { from_customer_id: from.id })).status).toBe(200);
}

/** Sends an announcement, and waits until its messages are queued. */
async function announce({ store }: Shop, count: number, filter: object = {}): Promise<string> {
  const path = `${store.store}/announcements`;
  const { body } = await store.post<AnnouncementJson>(path, {
    title: 'Closed on Monday',
    text: 'We are back on Tuesday.',
    channels: ['email'],
    ...filter,
  });
  expect((await store.post(`${path}/${body.id}/send`, {})).status).toBe(200);
  const find = `select from campaigns where kind = 'announcement' and id = $1 and is_addressed`;
  await eventually(
    async () => (await service.database.query(find, [body.id])).rowCount,
    (count) => count === 1,
  );
  await eventually(
    () => listRecipients(store, `announcements/${body.id}`),
    (rows) =>
      rows.length === count &&
      rows.every(({ state, due_at }) => state === 'skipped' || isLater(due_at)),
  );
  return `announcements/${body.id}`;
}

const isLater = (at: string | null) => at !== null && Date.parse(at) > Date.now() + 60_000;

async function listRecipients(store: Client, path: string): Promise<MessageRecipientJson[]> {
  return (await store.get<MessageRecipientJson[]>(`${store.store}/${path}/recipients`)).body;
}

/** Ends the quiet hours, and waits until every message has its outcome. @returns customers with outcomes, by customer */
async function release({ store }: Shop, path: string): Promise<[number, string, string | null][]> {
  await setQuietHours(store, { quiet_from: null, quiet_to: null });
  await service.database.query(
    `update outgoing_messages set due_at = now()
     where kind = 'campaign' and account_id = $1 and state = 'queued' and process is null`,
    [store.accountId],
  );
  const rows = await eventually(
    () => listRecipients(store, path),
    (all) => all.length > 0 && all.every(({ state }) => state !== 'queued'),
  );
  return rows.map(({ customer_id: id, state, reason }) => [id, state, reason]);
}

const countMails = ({ email }: Holder) => mails.received.filter(({ to }) => to === email).length;

describe('an announcement that waits while customers are merged', () => {
  it('comes once to whoever goes on, who was addressed too', async () => {
    const shop = await openShop();
    const [one, other] = [
      await addHolder(shop, shop.cards[0]),
      await addHolder(shop, shop.cards[0]),
    ];
    const path = await announce(shop, 2);
    await merge(shop, one, other);
    expect(await release(shop, path)).toEqual([
      [one.id, 'skipped', 'merged'],
      [other.id, 'sent', null],
    ]);
    expect([countMails(one), countMails(other)]).toEqual([0, 1]);
  });

  it('comes to whoever goes on, whom nothing reached before', async () => {
    const shop = await openShop();
    const one = await addHolder(shop, shop.cards[0]);
    const survivor = await addHolder(shop, shop.cards[0], { email: null, phone: '+4930123456' });
    const path = await announce(shop, 2);
    await merge(shop, one, survivor);
    expect(await release(shop, path)).toEqual([
      [one.id, 'skipped', 'merged'],
      [survivor.id, 'sent', null],
    ]);
    expect(countMails(one)).toBe(1);
  });

  it('comes to whoever goes on at the end of a chain, who was not addressed, and is in their history', async () => {
    const shop = await openShop();
    const [first, second] = [
      await addHolder(shop, shop.cards[0]),
      await addHolder(shop, shop.cards[0]),
    ];
    const third = await addHolder(shop, shop.cards[1]);
    const path = await announce(shop, 2, { card_id: shop.cards[0] });
    await merge(shop, first, second);
    await merge(shop, second, third);
    const outcomes = await release(shop, path);
    expect(outcomes).toContainEqual([third.id, 'sent', null]);
    expect(outcomes.filter(([, state]) => state === 'sent')).toHaveLength(1);
    expect(outcomes.filter(([, , reason]) => reason === 'merged')).toHaveLength(1);
    expect([first, second, third].map(countMails)).toEqual([0, 0, 1]);
    const history = `${shop.store.store}/history?type=customer.messaged&customer_id=${third.id}`;
    await eventually(
      async () => (await shop.store.get<unknown[]>(history)).body,
      ({ length }) => length === 1,
    );
  });

  it('comes to each of them when they are unmerged meanwhile', async () => {
    const shop = await openShop();
    const [one, other] = [
      await addHolder(shop, shop.cards[0]),
      await addHolder(shop, shop.cards[0]),
    ];
    const path = await announce(shop, 2);
    await merge(shop, one, other);
    const unmerge = `${shop.store.store}/customers/${other.id}/unmerge`;
    expect((await shop.store.post(unmerge, { from_customer_id: one.id })).status).toBe(200);
    const outcomes = await release(shop, path);
    expect(outcomes.map(([id, state]) => [id, state])).toEqual([
      [one.id, 'sent'],
      [other.id, 'sent'],
    ]);
    expect([countMails(one), countMails(other)]).toEqual([1, 1]);
  });

  it('goes to nobody when whoever goes on did not agree, or was erased', async () => {
    const shop = await openShop();
    const [willing, silent] = [
      await addHolder(shop, shop.cards[0]),
      await addHolder(shop, shop.cards[1], { marketing_consent: false }),
    ];
    const [gone, erased] = [
      await addHolder(shop, shop.cards[0]),
      await addHolder(shop, shop.cards[1]),
    ];
    const path = await announce(shop, 2, { card_id: shop.cards[0] });
    await merge(shop, willing, silent);
    await merge(shop, gone, erased);
    const erase = `${shop.store.store}/customers/${erased.id}/erase`;
    expect((await shop.store.post(erase)).status).toBe(204);
    expect(await release(shop, path)).toEqual([
      [silent.id, 'skipped', 'no_consent'],
      [gone.id, 'skipped', 'no_card'],
    ]);
    expect([willing, silent, gone, erased].map(countMails)).toEqual([0, 0, 0, 0]);
  });
});

describe('a message rule', () => {
  const createRule = async ({ store }: Shop, fields: object) => {
    const { status, body } = await store.post<MessageRuleJson>(`${store.store}/message_rules`, {
      title: 'We miss you',
      text: 'Come by',
      channels: ['email'],
      enabled: true,
      ...fields,
    });
    expect(status).toBe(201);
    return body.id;
  };

  /** Moves all that happened until these joined into the past, once the history has it: times never fall along it. */
  const moveBack = async (holders: Holder[], hours: number) => {
    const find = `name = 'customer_card.created' and customer_id = any ($1)`;
    const ids = holders.map(({ id }) => id);
    await eventually(
      async () =>
        (await service.database.query(`select from history where ${find}`, [ids])).rowCount,
      (count) => count === ids.length,
    );
    await service.database.query(
      `update history set latest_recorded_at = least(latest_recorded_at, now() - make_interval(hours => $1)),
         occurred_at = least(occurred_at, now() - make_interval(hours => $1))
       where seq <= (select max(seq) from history where customer_id = any ($2))`,
      [hours, ids],
    );
  };

  const lookBack = ({ store }: Shop, days: number) =>
    service.database.query(
      `update campaigns set checked_until = now() - make_interval(days => $2), due_at = now(), process = null
       where kind = 'rule' and account_id = $1`,
      [store.accountId, days],
    );

  const waitForCheck = ({ store }: Shop) =>
    eventually(
      async () =>
        (
          await service.database.query(
            `select from campaigns
             where kind = 'rule' and account_id = $1 and process is null and due_at > now()
               and checked_until > now() - interval '1 hour'`,
            [store.accountId],
          )
        ).rowCount,
      (count) => count === 1,
    );

  it('reminds whoever goes on once after the last visit of either, and tells nothing about the erased', async () => {
    const shop = await openShop();
    await setQuietHours(shop.store, { quiet_from: null, quiet_to: null });
    // In the order of their visits, as the history has them.
    const survivor = await addHolder(shop, shop.cards[0]);
    const erased = await addHolder(shop, shop.cards[0]);
    const last = await addHolder(shop, shop.cards[0]);
    const visitor = await addHolder(shop, shop.cards[0]);
    await moveBack([survivor, erased], 40);
    await moveBack([last], 30);
    await merge(shop, last, survivor);
    const erase = `${shop.store.store}/customers/${erased.id}/erase`;
    expect((await shop.store.post(erase)).status).toBe(204);
    const id = await createRule(shop, { kind: 'inactive', threshold: 1 });
    const reach = await shop.store.get<{ people: number }>(
      `${shop.store.store}/message_rules/${id}/reach?days=3`,
    );
    expect(reach.body.people).toBe(1);
    await lookBack(shop, 3);
    await waitForCheck(shop);
    const outcomes = await release(shop, `message_rules/${id}`);
    expect(outcomes).toEqual([[survivor.id, 'sent', null]]);
    expect([last, survivor, erased, visitor].map(countMails)).toEqual([0, 1, 0, 0]);
  });

  it('leaves alone a merged customer whose survivor was here since', async () => {
    const shop = await openShop();
    await setQuietHours(shop.store, { quiet_from: null, quiet_to: null });
    const gone = await addHolder(shop, shop.cards[0]);
    const alone = await addHolder(shop, shop.cards[0]);
    const survivor = await addHolder(shop, shop.cards[0]);
    await moveBack([gone, alone], 30);
    await moveBack([survivor], 20);
    await merge(shop, gone, survivor);
    const id = await createRule(shop, { kind: 'inactive', threshold: 1 });
    await lookBack(shop, 3);
    await waitForCheck(shop);
    expect(await release(shop, `message_rules/${id}`)).toEqual([[alone.id, 'sent', null]]);
    expect(countMails(survivor)).toBe(0);
  });

  it('congratulates two who turn out to be one person once', async () => {
    const shop = await openShop();
    const today = new Date().toISOString().slice(5, 10);
    const birthday = `1990-${today === '02-29' ? '02-28' : today}`;
    const [one, other] = [
      await addHolder(shop, shop.cards[0], { birthday }),
      await addHolder(shop, shop.cards[0], { birthday }),
    ];
    await service.database.query(
      `update customers set state = jsonb_set(state, '{createdAt}', '"2020-01-01T00:00:00.000Z"')
       where account_id = $1`,
      [shop.store.accountId],
    );
    const path = `message_rules/${await createRule(shop, { kind: 'birthday' })}`;
    await lookBack(shop, 2);
    await eventually(
      () => listRecipients(shop.store, path),
      (rows) => rows.length === 2 && rows.every(({ due_at }) => isLater(due_at)),
    );
    await merge(shop, one, other);
    const outcomes = await release(shop, path);
    expect(outcomes.map(([, state]) => state).sort()).toEqual(['sent', 'skipped']);
    expect(outcomes).toContainEqual([other.id, 'sent', null]);
    expect(outcomes).toContainEqual([one.id, 'skipped', 'merged']);
    expect([countMails(one), countMails(other)]).toEqual([0, 1]);
  });
});
