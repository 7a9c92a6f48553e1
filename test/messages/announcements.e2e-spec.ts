import { beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import type { AnnouncementJson } from '#outbound/campaigns/announcement.dto.js';
import type { ReachJson } from '#outbound/campaigns/message-fields.dto.js';
import type {
  MessageRuleJson,
  RuleOccasionJson,
  RuleReachJson,
} from '#outbound/campaigns/message-rule.dto.js';
import { eventually } from '../support/jest/eventually.js';
import { AddMember } from '#identity/member.commands.js';
import { CreateToken } from '#identity/token.commands.js';
import { CreateUser } from '#identity/identity.commands.js';
import {
  expectFailure,
  useService,
  type ContractClient,
  type Failure,
} from '../support/http/contract.js';
import { cli } from '../support/services/service.js';
import { runStatistics } from '../support/services/statistics.js';
import { startDispatcher } from '../support/services/webhook-dispatcher.js';

/** Nothing is sent: no dispatcher runs, except during the first test. */
const service = useService({
  SMTP_URL: 'smtp://127.0.0.1:1',
  MAIL_FROM: 'Inkpad <inkpad@shop.example>',
  SMS_URL: 'http://127.0.0.1:1/',
  SMS_ACCOUNT: 'account',
  SMS_TOKEN: 'token',
  SMS_FROM: '+15005550006',
});
const DRAFT = { title: 'Closed on Monday', text: 'We are back on Tuesday at eight.' };
const RULE = {
  kind: 'stamps_away',
  threshold: 1,
  title: 'One more',
  text: 'One stamp is missing.',
};
let store: ContractClient;
let announcements: string;
let rules: string;
let cardId: number;
let people = 0;

type Created = { id: number; customer_card: { id: number; uuid: string } | null };

async function open(fields: object = {}): Promise<{ client: ContractClient; card: number }> {
  const client = await service.newStore(fields);
  const { body } = await client.post<{ id: number }>(`${client.store}/cards`, {
    card: { name: 'Coffee', stamps_required: 3 },
  });
  return { client, card: body.id };
}

async function addCustomer(fields: object, client = store, card = cardId): Promise<Created> {
  const { status, body } = await client.post<Created>(`${client.store}/customers`, {
    customer: { first_name: 'Anna', email: `p${++people}@mail.example`, ...fields },
    card_id: card,
  });
  expect(status).toBe(201);
  return body;
}

const addDays = (day = '', days: number) =>
  new Date(Date.parse(`${day}T00:00Z`) + days * 86_400_000).toISOString().slice(0, 10);

const create = (fields: object = {}) =>
  store.post<AnnouncementJson>(announcements, { ...DRAFT, ...fields });

beforeAll(async () => {
  const opened = await open();
  store = opened.client;
  cardId = opened.card;
  announcements = `${store.store}/announcements`;
  rules = `${store.store}/message_rules`;
});

describe('announcements', () => {
  it('ANNOUNCE-01 An announcement is created as a draft, and nobody gets it before it is sent', async () => {
    const { client, card } = await open();
    await addCustomer({ marketing_consent: true }, client, card);
    const path = `${client.store}/announcements`;
    const { status, body } = await client.post<AnnouncementJson>(path, DRAFT);
    expect(status).toBe(201);
    expect(body).toMatchObject({
      ...DRAFT,
      state: 'draft',
      channels: ['wallet', 'web_push', 'email', 'sms'],
      send_at: null,
      counts: { people: 0, sent: 0 },
    });
    const list = await client.get<AnnouncementJson[]>(path);
    expect(list.body[0]).toEqual(body);

    const { body: later } = await client.post<AnnouncementJson>(path, DRAFT);
    const dispatcher = await startDispatcher(service.running);
    const send = async (id: number) => {
      expect((await client.post(`${path}/${id}/send`, {})).status).toBe(200);
      await eventually(
        async () => (await client.get<AnnouncementJson>(`${path}/${id}`)).body.counts.people,
        (count) => count === 1,
      );
    };
    try {
      await send(later.id);
      expect((await client.get<AnnouncementJson>(`${path}/${body.id}`)).body).toEqual(body);
      expect((await client.get<unknown[]>(`${path}/${body.id}/recipients`)).body).toEqual([]);
      await send(body.id);
    } finally {
      await dispatcher.kill('SIGTERM');
    }
  });

  it('ANNOUNCE-02 A title of more than 60 characters, a text of more than 300, and channels that are unknown, none or named twice are 422 on the field', async () => {
    const wrong: [string, unknown][] = [
      ['title', 'x'.repeat(61)],
      ['text', 'x'.repeat(301)],
      ['channels', []],
      ['channels', ['pigeon']],
      ['channels', ['sms', 'sms']],
      ['channels', 'sms'],
    ];
    for (const [field, value] of wrong) {
      const { status, body } = await store.post<Failure>(announcements, {
        ...DRAFT,
        [field]: value,
      });
      expect([status, Object.keys(body.errors ?? {})]).toEqual([422, [field]]);
    }
  });

  it('ANNOUNCE-03 A preview counts the customers by the first channel that reaches them, and the others by the reason of each channel', async () => {
    const { client, card } = await open();
    await addCustomer({ email: 'a@mail.example', marketing_consent: true }, client, card);
    await addCustomer({ email: 'b@mail.example' }, client, card);
    const path = `${client.store}/announcements/preview`;
    const { status, body } = await client.post<ReachJson>(path, { channels: ['wallet', 'email'] });
    expect(status).toBe(200);
    expect(body.people).toBe(2);
    expect(body.reached + body.unreached).toBe(2);
    expect(body.reasons).toContainEqual(
      expect.objectContaining({ channel: 'wallet', reason: 'not_set_up' }),
    );
    expect((await client.get<unknown[]>(`${client.store}/announcements`)).body).toEqual([]);
  });

  it('ANNOUNCE-04 E-mail needs the consent to marketing, and SMS the consent to SMS', async () => {
    const { client, card } = await open({ locale: 'en-DE' });
    const contact = { email: 'a@mail.example', phone: '+4915112345678' };
    await addCustomer({ ...contact, sms_consent: true }, client, card);
    const preview = async (channels: string[]) =>
      (await client.post<ReachJson>(`${client.store}/announcements/preview`, { channels })).body;
    expect(await preview(['email'])).toMatchObject({
      reached: 0,
      reasons: [{ channel: 'email', reason: 'no_consent', people: 1 }],
    });
    expect(await preview(['email', 'sms'])).toMatchObject({ by_channel: { email: 0, sms: 1 } });
  });

  it('ANNOUNCE-22 Nobody is reached by SMS at a number to which the store sends none (MSG-07, MSG-08): the reason is `country`', async () => {
    const { client, card } = await open({ locale: 'en-DE' });
    const [german, austrian, premium] = ['+4915112345678', '+436641234567', '+49900112345'];
    for (const phone of [german, austrian, premium]) {
      await addCustomer({ phone, sms_consent: true }, client, card);
    }
    const preview = async (channels: string[]) =>
      (await client.post<ReachJson>(`${client.store}/announcements/preview`, { channels })).body;
    expect(await preview(['sms'])).toMatchObject({
      people: 3,
      reached: 1,
      reasons: [{ channel: 'sms', reason: 'country', people: 2 }],
    });
    expect(await preview(['wallet'])).toMatchObject({ people: 3, reached: 0 });
    const rule = { ...RULE, kind: 'stamps_away', threshold: 3, channels: ['sms'] };
    const { body: created } = await client.post<MessageRuleJson>(
      `${client.store}/message_rules`,
      rule,
    );
    const reach = `${client.store}/message_rules/${created.id}/reach`;
    expect((await client.get<RuleReachJson>(reach)).body.by_channel.sms).toBe(0);
  });

  it('ANNOUNCE-05 The filters of an announcement are those of the list of customers', async () => {
    const { client, card } = await open();
    const customer = await addCustomer({ birthday: '1990-05-31' }, client, card);
    await addCustomer({ birthday: '1990-06-30' }, client, card);
    await client.post(
      `${client.store}/customers/${customer.id}/customer_cards/${customer.customer_card?.id}/stamp`,
      { stamps: 2 },
    );
    const count = async (filter: object) =>
      (await client.post<ReachJson>(`${client.store}/announcements/preview`, filter)).body.people;
    expect(await count({ card_id: card })).toBe(2);
    expect(await count({ birthday_month: 5 })).toBe(1);
    expect(await count({ card_id: card, min_stamps: 2 })).toBe(1);
    expect(await count({ inactive_since: '2020-01-01' })).toBe(0);
    const foreign = await client.post(`${client.store}/announcements/preview`, { card_id: cardId });
    expect(foreign.status).toBe(404);
  });

  it('ANNOUNCE-06 An announcement can be changed until it begins, and cancelled until every message has its outcome', async () => {
    const { body } = await create();
    const path = `${announcements}/${body.id}`;
    const changed = await store.patch<AnnouncementJson>(path, { text: 'Back on Wednesday.' });
    expect(changed.body).toMatchObject({ title: DRAFT.title, text: 'Back on Wednesday.' });
    const cancelled = await store.post<AnnouncementJson>(`${path}/cancel`, {});
    expect(cancelled.body.state).toBe('cancelled');
    const late = await store.patch<Failure>(path, { text: 'Too late' });
    expect([late.status, late.body.errors?.['base']]).toEqual([422, [expect.any(String)]]);

    // A process that has read whom it is for, and addresses it until then, begins anew.
    const scheduled = `${announcements}/${(await create()).body.id}`;
    const sendAt = new Date(Date.now() + 60_000).toISOString();
    await store.post(`${scheduled}/send`, { send_at: sendAt });
    const { database } = service.running;
    await database.query(
      `update campaigns set due_at = now() + interval '10 minutes', process = 1 where send_at = $1`,
      [sendAt],
    );
    expect((await store.patch(scheduled, { birthday_month: 1 })).status).toBe(200);
    const { rows } = await database.query<{ due_at: Date; process: number | null }>(
      'select due_at, process from campaigns where send_at = $1',
      [sendAt],
    );
    expect(rows).toEqual([{ due_at: new Date(sendAt), process: null }]);
    await store.post(`${scheduled}/cancel`, {});
  });

  it('ANNOUNCE-07 Sending or cancelling an announcement twice does so once', async () => {
    const { body } = await create();
    const path = `${announcements}/${body.id}`;
    const sendAt = new Date(Date.now() + 86_400_000).toISOString();
    for (const _ of [1, 2]) {
      const sent = await store.post<AnnouncementJson>(`${path}/send`, { send_at: sendAt });
      expect([sent.status, sent.body.state, sent.body.send_at]).toEqual([200, 'scheduled', sendAt]);
    }
    const late = await store.post<Failure>(`${path}/send`, { send_at: '2099-01-01T00:00:00Z' });
    expect([late.status, Object.keys(late.body.errors ?? {})]).toEqual([422, ['send_at']]);
    for (const _ of [1, 2]) {
      const cancelled = await store.post<AnnouncementJson>(`${path}/cancel`, {});
      expect([cancelled.status, cancelled.body.state]).toEqual([200, 'cancelled']);
    }
  });

  it('ANNOUNCE-08 A store may have 20 unfinished announcements and 20 rules; more are 422 `base`, code `limit_reached`', async () => {
    const { client } = await open();
    const send = (path: string, body: object) =>
      client.post<Failure>(`${client.store}${path}`, body);
    for (const [path, body, code] of [
      ['/announcements', DRAFT, 'too_many_unfinished_announcements'],
      ['/message_rules', RULE, 'too_many_rules'],
    ] as const) {
      for (let i = 0; i < 20; i++) expect((await send(path, body)).status).toBe(201);
      const refused = await send(path, body);
      expect([refused.status, refused.body.code]).toEqual([422, 'limit_reached']);
      expect(refused.body.error_codes).toEqual({ base: [code] });
    }
  });

  it('ANNOUNCE-09 Ten announcements of a store may begin in 24 hours; more are 422 `base`, code `quota_exceeded`', async () => {
    const { client } = await open();
    const path = `${client.store}/announcements`;
    const sendAt = new Date(Date.now() + 3_600_000).toISOString();
    const codes: (string | undefined)[] = [];
    for (let i = 0; i < 11; i++) {
      const { body } = await client.post<AnnouncementJson>(path, DRAFT);
      const sent = await client.post<Failure>(`${path}/${body.id}/send`, { send_at: sendAt });
      codes.push(sent.body.code);
    }
    expect(codes.filter((code) => code !== undefined)).toEqual(['quota_exceeded']);
    expect(codes.at(-1)).toBe('quota_exceeded');
  });
});

describe('message rules', () => {
  it('ANNOUNCE-10 A message rule is disabled unless it is created with `enabled`', async () => {
    const { status, body } = await store.post<MessageRuleJson>(rules, RULE);
    expect([status, body.enabled]).toEqual([201, false]);
    const enabled = await store.patch<MessageRuleJson>(`${rules}/${body.id}`, { enabled: true });
    expect(enabled.body).toEqual({ ...body, enabled: true, updated_at: expect.any(String) });
    for (const wrong of [
      { threshold: null },
      { threshold: 11 },
      { kind: 'birthday', threshold: 3 },
      { kind: 'reward_unused', threshold: 366 },
    ]) {
      const refused = await store.post<Failure>(rules, { ...RULE, ...wrong });
      expect([refused.status, Object.keys(refused.body.errors ?? {})]).toEqual([
        422,
        ['threshold'],
      ]);
    }
  });

  it('ANNOUNCE-11 The reach of a message rule shows whom it would have reached: each occasion once, by the day on which it happened, and as a list, newest first', async () => {
    const { client, card } = await open();
    const customer = await addCustomer({}, client, card);
    const stamp = `${client.store}/customers/${customer.id}/customer_cards/${customer.customer_card?.id}/stamp`;
    await client.post(stamp, { stamps: 1 });
    await client.post(stamp, { stamps: 1 });
    const { body: rule } = await client.post<MessageRuleJson>(
      `${client.store}/message_rules`,
      RULE,
    );
    const path = `${client.store}/message_rules/${rule.id}/reach`;
    const stopping = new AbortController();
    const filling = runStatistics(service.running, stopping.signal);
    const reach = await eventually(
      async () => (await client.get<RuleReachJson>(path)).body,
      (reach) => reach.people > 0,
    );
    stopping.abort();
    await filling;
    expect(reach).toMatchObject({ days: 30, people: 1, reached: 0, unreached: 1 });
    expect(reach.by_day.map(({ people }) => people)).toEqual([1]);
    const { body: list } = await client.get<RuleOccasionJson[]>(`${path}/customers?limit=1`);
    expect(list).toEqual([
      {
        customer_id: customer.id,
        customer_name: 'Anna',
        customer_card_id: customer.customer_card?.id,
        at: expect.any(String),
        channel: null,
      },
    ]);
    expect((await client.get<Failure>(`${path}?days=91`)).status).toBe(422);
    const setBack = (days: number) =>
      service.running.database.query(
        'update history set occurred_at = recorded_at - make_interval(days => $1) where account_id = $2',
        [days, client.accountId],
      );
    await setBack(3);
    const { body: late } = await client.get<RuleReachJson>(path);
    expect(late.by_day).toEqual([{ day: addDays(reach.by_day[0]?.day, -3), people: 1 }]);
    await setBack(40);
    expect((await client.get<RuleReachJson>(path)).body).toMatchObject({ people: 0, by_day: [] });
  });

  it('ANNOUNCE-12 A deleted message rule is 404, and sends nothing any more', async () => {
    const { body } = await store.post<MessageRuleJson>(rules, { ...RULE, enabled: true });
    expect((await store.delete(`${rules}/${body.id}`)).status).toBe(204);
    expect((await store.delete(`${rules}/${body.id}`)).status).toBe(404);
    expect((await store.get(`${rules}/${body.id}`)).status).toBe(404);
  });

  it('ANNOUNCE-13 Quiet hours have both ends or none, and two different ones', async () => {
    const path = `${store.store}/message_settings`;
    expect((await store.get(path)).body).toEqual({
      quiet_from: '21:00',
      quiet_to: '08:00',
      max_per_week: 2,
    });
    const changed = await store.patch(path, { quiet_from: null, quiet_to: null, max_per_week: 1 });
    expect(changed.body).toEqual({ quiet_from: null, quiet_to: null, max_per_week: 1 });
    for (const [wrong, field] of [
      [{ quiet_from: '20:00' }, 'quiet_to'],
      [{ quiet_to: '20:00' }, 'quiet_from'],
      [{ quiet_from: '20:00', quiet_to: '20:00' }, 'quiet_to'],
      [{ quiet_from: '8 pm', quiet_to: '20:00' }, 'quiet_from'],
    ] as const) {
      const { status, body } = await store.patch<Failure>(path, wrong);
      expect([status, Object.keys(body.errors ?? {})]).toEqual([422, [field]]);
    }
  });

  it('ANNOUNCE-14 Staff may not use messages to customers, and announcements and message rules of another store are 404', async () => {
    const { client } = await open();
    const { body } = await create();
    const foreign = await client.get(`${client.store}/announcements/${body.id}`);
    expect(foreign.status).toBe(404);
    const email = 'staff@announcements.example';
    await service.running.execute(new CreateUser(cli, email, 'Staff', 'correct horse'));
    await service.running.execute(new AddMember(cli, store.accountId, email, 'staff'));
    const { token } = await service.running.execute(new CreateToken(cli, email, 'staff'));
    const staff = store.as(token);
    for (const path of ['announcements', 'message_rules', 'message_settings']) {
      expect((await staff.get(`${store.store}/${path}`)).status).toBe(403);
    }
  });
});

it('ANNOUNCE-15 Whoever has the link of a card can stop the messages to its holder at `/passes/{uuid}/messages`, and allow them again', async () => {
  const { client, card } = await open();
  const customer = await addCustomer(
    { email: 'c@mail.example', marketing_consent: true },
    client,
    card,
  );
  const page = `${service.running.baseUrl}/passes/${customer.customer_card?.uuid}/messages`;
  const count = async () =>
    (await client.post<ReachJson>(`${client.store}/announcements/preview`, {})).body;
  const post = (form: Record<string, string>) =>
    fetch(page, { method: 'POST', body: new URLSearchParams(form), redirect: 'manual' });
  expect((await count()).reached).toBe(1);
  for (const _ of [1, 2]) expect((await post({ action: 'stop' })).status).toBe(303);
  expect(await count()).toMatchObject({
    reached: 0,
    reasons: expect.arrayContaining([{ channel: 'email', reason: 'stopped', people: 1 }]),
  });
  expect(await (await fetch(page)).text()).toContain('value="allow"');
  await post({ action: 'allow' });
  expect((await count()).reached).toBe(1);
  const unknown = await fetch(page.replace(customer.customer_card?.uuid ?? '', 'nobody'));
  expect(unknown.status).toBe(404);

  // A merge keeps them stopped, until they are allowed on the card that is left.
  const otherCustomer = await addCustomer({}, client, card);
  const otherPage = page.replace(
    customer.customer_card?.uuid ?? '',
    otherCustomer.customer_card?.uuid ?? '',
  );
  await fetch(otherPage, { method: 'POST', body: new URLSearchParams(), redirect: 'manual' });
  expect((await count()).reached).toBe(1);
  const merge = `${client.store}/customers/${customer.id}/merge`;
  expect((await client.post(merge, { from_customer_id: otherCustomer.id })).status).toBe(200);
  expect((await count()).reached).toBe(0);
  expect(await (await fetch(page)).text()).toContain('value="allow"');
  await post({ action: 'allow' });
  expect((await count()).reached).toBe(1);

  // So does a second card that was stopped before it was confirmed, but not one that nobody confirmed.
  const addStoppedDecoy = (at: string | null) =>
    service.running.database.query(
      `with decoy as (
         insert into decoy_cards (id, account_id, card_id, customer_id, uuid, sealed, state, confirmed_at)
         values (nextval('decoy_cards_id'), $1, $2, $3, gen_random_uuid(), '', '{}', $4) returning id)
       insert into message_stops (customer_card_id, account_id) select id, $1 from decoy`,
      [client.accountId, card, customer.id, at],
    );
  await addStoppedDecoy(null);
  expect((await count()).reached).toBe(1);
  await addStoppedDecoy('2026-01-31T12:00:00Z');
  expect((await count()).reached).toBe(0);
  await post({ action: 'allow' });
  expect((await count()).reached).toBe(1);
});

it('ANNOUNCE-17 A POST to `/passes/{uuid}/messages` that is not the form of the page stops the messages and is 200, whatever its body and media type', async () => {
  const { client, card } = await open();
  const contact = { email: 'c@mail.example', marketing_consent: true };
  const customer = await addCustomer(contact, client, card);
  const getPage = (uuid = '') => `${service.running.baseUrl}/passes/${uuid}/messages`;
  const page = getPage(customer.customer_card?.uuid);
  const count = async () =>
    (await client.post<ReachJson>(`${client.store}/announcements/preview`, {})).body.reached;
  const send = (init: RequestInit, url = page) =>
    fetch(url, { method: 'POST', redirect: 'manual', ...init });
  const allow = async () => {
    expect((await send({ body: new URLSearchParams({ action: 'allow' }) })).status).toBe(303);
    expect(await count()).toBe(1);
  };
  const multipart = new FormData();
  multipart.append('List-Unsubscribe', 'One-Click');
  const oneClick = 'List-Unsubscribe=One-Click';
  const typed = (type: string, body = oneClick): RequestInit => ({
    body: new Blob([body]),
    headers: { 'content-type': type },
  });
  const form = 'application/x-www-form-urlencoded';
  const requests: RequestInit[] = [
    { body: multipart },
    { body: new URLSearchParams({ 'List-Unsubscribe': 'One-Click' }) },
    { body: new URLSearchParams({ 'list-unsubscribe': 'one-click', action: 'allow' }) },
    { body: new URLSearchParams() },
    { body: new URLSearchParams({ action: 'ALLOW' }) },
    {},
    typed(form.toUpperCase()),
    typed(`${form}; charset=utf-16`),
    typed(`${form}; charset="`),
    typed('multipart/form-data'),
    typed('Multipart/Form-Data; boundary=x', '--y\r\n'),
    typed('text/plain', 'action=allow'),
    typed('application/json', '{"action":"allow"'),
    typed('application/octet-stream'),
    typed('no media type'),
    typed('text/html', 'x'.repeat(3_000_000)),
    typed(form, `${oneClick}&x=${'x'.repeat(3_000_000)}`),
    { ...typed(form), headers: { 'content-type': form, 'content-encoding': 'gzip' } },
  ];
  for (const request of requests) {
    for (const _ of [1, 2]) {
      const response = await send(request);
      expect([response.status, response.headers.get('location')]).toEqual([200, null]);
    }
    expect(await count()).toBe(0);
    await allow();
  }
  // Neither a look at the page nor its preview by a mail program stops anything.
  for (const method of ['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE']) {
    await send({ method }, `${page}?List-Unsubscribe=One-Click&action=stop`);
    expect([method, await count()]).toEqual([method, 1]);
  }

  // Without an end of its body that anybody has seen yet.
  const body = new Blob([oneClick]).stream();
  const streamed = await send({ body, duplex: 'half' } as RequestInit);
  expect(streamed.status).toBe(200);
  expect(await count()).toBe(0);
  await allow();

  // The addresses in earlier e-mails to somebody who was merged stop the messages to whoever goes on.
  const merged = await addCustomer({ email: 'm@mail.example' }, client, card);
  const merge = `${client.store}/customers/${customer.id}/merge`;
  expect((await client.post(merge, { from_customer_id: merged.id })).status).toBe(200);
  expect((await send({ body: multipart }, getPage(merged.customer_card?.uuid))).status).toBe(200);
  expect(await count()).toBe(0);

  expect((await client.post(`${client.store}/customers/${customer.id}/erase`)).status).toBe(204);
  for (const url of [page, getPage('nobody'), getPage(randomUUID())]) {
    expect((await send({ body: multipart }, url)).status).toBe(404);
  }
});

it('ANNOUNCE-16 When a store asks for many previews or reaches at once, some are 503 with `Retry-After`', async () => {
  const [{ client }, { client: otherStore }] = [await open(), await open()];
  const ask = (client: ContractClient) =>
    client.post<Failure>(`${client.store}/announcements/preview`, {});
  const holder = new pg.Client(service.running.database.ownerUrl);
  await holder.connect();
  try {
    await holder.query('begin');
    await holder.query('lock table message_stops in access exclusive mode');
    const responses = Array.from({ length: 7 }, () => ask(client));
    const refused = await Promise.race(responses);
    const responseOfOther = ask(otherStore);
    await holder.query('rollback');
    expectFailure(refused, 503, 'unavailable');
    expect(refused.headers.get('retry-after')).not.toBeNull();
    expect((await responseOfOther).status).toBe(200);
    const statuses = (await Promise.all(responses)).map(({ status }) => status);
    expect(new Set(statuses)).toEqual(new Set([200, 503]));
  } finally {
    await holder.end();
  }
  expect((await ask(client)).status).toBe(200);
});
