import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Pool } from 'pg';
import { Audiences } from '#outbound/campaigns/audiences.service.js';
import type { ReachJson } from '#outbound/campaigns/message-fields.dto.js';
import type { CreatedCustomerJson, CustomerJson } from '#loyalty/customers/customer.dto.js';
import type { PosterJson } from '#loyalty/posters/poster.dto.js';
import type { CustomerCardDetailJson } from '#loyalty/stamping/customer-card.dto.js';
import { newPoster, SignupForm } from '../support/browser/signup.js';
import { RecordedStatements } from '../support/database/recorded-statements.js';
import { PassFollower } from '../support/services/pass-dispatcher.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';

/** Second cards (ADR-0051) of customers who are merged: the API, the page and the pass find the same card. */

const ORIGIN = 'https://cards.example';
const ROWS = 100_000;
let service: LocalService;
let follower: PassFollower;
let store: Client;
let poster: PosterJson;
let people = 0;

beforeAll(async () => {
  service = await startService({ PUBLIC_URL: ORIGIN });
  follower = new PassFollower(service);
  store = await service.newStore();
  poster = await newPoster(store);
});
afterAll(async () => {
  await follower.stop();
  await service.stop();
});

type Person = { id: number; card: CustomerCardDetailJson | null; path: string };

async function createPerson(first_name: string, isEnrolled = true): Promise<Person> {
  const { body } = await store.post<CreatedCustomerJson>(`${store.store}/customers`, {
    customer: { first_name, email: `person${++people}@mail.example` },
    ...(isEnrolled && { card_id: poster.card_id }),
  });
  const path = `${store.store}/customers/${body.id}`;
  return { id: body.id, card: body.customer_card ?? null, path };
}

/** A card that looks issued to somebody who has entered the address of a customer. */
class SecondCard {
  private constructor(
    readonly uuid: string,
    readonly id: number,
    private readonly byCode: string,
  ) {}

  static async signUp({ path }: Person, first_name = 'Mallory'): Promise<SecondCard> {
    const email = (await store.get<CustomerJson>(path)).body.email ?? '';
    const form = await SignupForm.open(service.baseUrl, ORIGIN, poster);
    const { location } = await form.send({ first_name, email });
    const [, uuid = ''] = /\/passes\/([0-9a-f-]{36})/.exec(location) ?? [];
    const text = await (await fetch(`${service.baseUrl}/passes/${uuid}`)).text();
    const [, code = ''] = /<span class="code">(\w{8})</.exec(text) ?? [];
    return new SecondCard(
      uuid,
      await follower.open(uuid),
      `${store.store}/customer_cards/by_code/${code}`,
    );
  }

  async confirm(): Promise<void> {
    const { status, text } = await store.post(`${this.byCode}/confirm`);
    if (status !== 200) throw new Error(`the card was not confirmed: ${text}`);
  }

  async stamp(stamps: number) {
    return store.stamp(this.byCode, stamps);
  }

  /** Reads which card the API, the page and the pass show. */
  async read() {
    await follower.waitUntilCaughtUp();
    const { body } = await store.get<CustomerCardDetailJson>(this.byCode);
    const page = await fetch(`${service.baseUrl}/passes/${this.uuid}`, { redirect: 'manual' });
    const content = (await follower.contents.load([this.id])).get(this.id);
    return {
      api: body.id,
      page: page.status === 302 ? page.headers.get('location') : page.status,
      pass: [content?.state, content?.stampsCount, content?.memberName],
    };
  }
}

async function merge(into: Person, from: Person): Promise<void> {
  const { status } = await store.post(`${into.path}/merge`, { from_customer_id: from.id });
  expect(status).toBe(200);
}

async function unmerge(into: Person, from: Person): Promise<void> {
  const { status } = await store.post(`${into.path}/unmerge`, { from_customer_id: from.id });
  expect(status).toBe(200);
}

async function setMessages(uuid: string, action: 'stop' | 'allow'): Promise<void> {
  const url = `${service.baseUrl}/passes/${uuid}/messages`;
  const body = new URLSearchParams({ action });
  expect((await fetch(url, { method: 'POST', body, redirect: 'manual' })).status).toBe(303);
}

/** Reads whether messages to somebody are stopped, and to how many people of the store. */
async function readStops({ id }: Person): Promise<[boolean | undefined, number]> {
  const addressees = await service.app.get(Audiences, { strict: false }).findAddressees([id]);
  const path = `${store.store}/announcements/preview`;
  const { body } = await store.post<ReachJson>(path, { channels: ['wallet'] });
  const stopped = body.reasons.find(({ reason }) => reason === 'stopped');
  return [addressees.get(id)?.person.hasStopped, stopped?.people ?? 0];
}

const shows = ({ card }: Person, stamps: number, name: string) => ({
  api: card?.id,
  page: `${ORIGIN}/passes/${card?.uuid}`,
  pass: ['valid', stamps, name],
});

describe('a confirmed second card', () => {
  it('leads to the card that goes on, through a chain of merges, and back after each is undone', async () => {
    const [xenia, yves, zoe] = [
      await createPerson('Xenia'),
      await createPerson('Yves'),
      await createPerson('Zoe'),
    ];
    const second = await SecondCard.signUp(xenia);
    await second.confirm();
    await second.stamp(1);
    expect(await second.read()).toEqual(shows(xenia, 1, 'Xenia'));
    await merge(yves, xenia);
    expect(await second.read()).toEqual(shows(yves, 1, 'Yves'));
    expect((await second.stamp(2)).body).toMatchObject({ id: yves.card?.id, stamps_count: 3 });
    expect(await second.read()).toEqual(shows(yves, 3, 'Yves'));
    expect((await follower.passes.find(second.id))?.notification).toMatchObject({ stamps: 2 });
    await merge(zoe, yves);
    expect(await second.read()).toEqual(shows(zoe, 3, 'Zoe'));
    await unmerge(zoe, yves);
    expect(await second.read()).toEqual(shows(yves, 3, 'Yves'));
    await unmerge(yves, xenia);
    expect(await second.read()).toEqual(shows(xenia, 1, 'Xenia'));
  });

  it('leads to a card that has changed hands, and back', async () => {
    const [xenia, yves] = [await createPerson('Xenia'), await createPerson('Yves', false)];
    const second = await SecondCard.signUp(xenia);
    await second.confirm();
    await merge(yves, xenia);
    expect(await second.read()).toEqual(shows(xenia, 0, 'Yves'));
    expect((await second.stamp(2)).body).toMatchObject({ id: xenia.card?.id, stamps_count: 2 });
    expect(await second.read()).toEqual(shows(xenia, 2, 'Yves'));
    await unmerge(yves, xenia);
    expect(await second.read()).toEqual(shows(xenia, 2, 'Xenia'));
  });

  it('leads to one card where several of its template were merged', async () => {
    const [survivor, ...others] = [
      await createPerson('Yves'),
      await createPerson('Anna'),
      await createPerson('Ben'),
    ];
    const seconds = [];
    for (const person of [survivor, ...others]) {
      const second = await SecondCard.signUp(person);
      await second.confirm();
      seconds.push(second);
    }
    for (const otherPerson of others) await merge(survivor, otherPerson);
    for (const second of seconds) expect(await second.read()).toEqual(shows(survivor, 0, 'Yves'));
    const { rows } = await service.database.query<{ count: number }>(
      `select count(*)::int as count from decoy_owners where decoy_id = any ($1)`,
      [seconds.map(({ id }) => id)],
    );
    expect(rows).toEqual([{ count: 3 }]);
  });

  it('follows the name of the survivor', async () => {
    const [xenia, yves] = [await createPerson('Xenia'), await createPerson('Yves')];
    const second = await SecondCard.signUp(xenia);
    await second.confirm();
    await merge(yves, xenia);
    await follower.waitUntilCaughtUp();
    const tag = await follower.tag(second.id);
    await store.send('PATCH', yves.path, { customer: { first_name: 'Yvonne' } });
    expect(await second.read()).toEqual(shows(yves, 0, 'Yvonne'));
    expect(await follower.tag(second.id)).toBeGreaterThan(tag);
  });

  it('stops the messages to the survivor, through a chain of merges, until they allow them', async () => {
    const [xenia, yves, zoe] = [
      await createPerson('Xenia'),
      await createPerson('Yves', false),
      await createPerson('Zoe'),
    ];
    const second = await SecondCard.signUp(xenia);
    await setMessages(second.uuid, 'stop');
    expect(await readStops(xenia)).toEqual([false, 0]);
    await second.confirm();
    expect(await readStops(xenia)).toEqual([true, 1]);
    await merge(yves, xenia);
    expect(await readStops(yves)).toEqual([true, 1]);
    await merge(zoe, yves);
    expect(await readStops(zoe)).toEqual([true, 1]);
    await unmerge(zoe, yves);
    expect(await readStops(zoe)).toEqual([false, 1]);
    expect(await readStops(yves)).toEqual([true, 1]);
    await merge(zoe, yves);
    await setMessages(zoe.card?.uuid ?? '', 'allow');
    expect(await readStops(zoe)).toEqual([false, 0]);
    await unmerge(zoe, yves);
    await unmerge(yves, xenia);
    expect(await readStops(xenia)).toEqual([false, 0]);
  });

  it('is gone with the survivor', async () => {
    const [xenia, yves] = [await createPerson('Xenia'), await createPerson('Yves')];
    const second = await SecondCard.signUp(xenia);
    await second.confirm();
    await merge(yves, xenia);
    expect((await store.post(`${yves.path}/erase`)).status).toBe(204);
    const { page, pass } = await second.read();
    expect([page, pass]).toEqual([404, ['void', 0, null]]);
    const { status, body } = await second.stamp(1);
    expect([status, body]).toMatchObject([422, { code: 'customer_erased' }]);
  });
});

describe('a second card that nobody has confirmed', () => {
  it('shows nothing of the survivor, and takes stamps for their card', async () => {
    const [xenia, yves] = [await createPerson('Xenia'), await createPerson('Yves')];
    const second = await SecondCard.signUp(xenia);
    await merge(yves, xenia);
    expect((await second.stamp(2)).body).toMatchObject({ id: yves.card?.id, stamps_count: 2 });
    const expected = { api: yves.card?.id, page: 200, pass: ['valid', 0, 'Mallory'] };
    expect(await second.read()).toEqual(expected);
    await second.confirm();
    expect(await second.read()).toEqual(shows(yves, 2, 'Yves'));
  });

  it('is confirmed for the survivor after the merge is undone, too', async () => {
    const [xenia, yves] = [await createPerson('Xenia'), await createPerson('Yves')];
    const second = await SecondCard.signUp(xenia);
    await merge(yves, xenia);
    await unmerge(yves, xenia);
    await second.confirm();
    expect(await second.read()).toEqual(shows(xenia, 0, 'Xenia'));
  });
});

describe('with 100,000 second cards', () => {
  it('each query finds its cards by indexes', async () => {
    const [xenia, yves] = [await createPerson('Xenia'), await createPerson('Yves')];
    const second = await SecondCard.signUp(xenia);
    await second.confirm();
    await follower.waitUntilCaughtUp();
    const insertCopies = (table: string, columns: string, values: string, from: string) =>
      service.database.query(
        `insert into ${table} (${columns}) select ${values} from generate_series(1, ${ROWS}) n, ${from}`,
      );
    const common = 'id, account_id, revision, hash, projection_version, state';
    await insertCopies(
      'customers',
      common,
      '1000000 + n, account_id, revision, hash, projection_version, state',
      `customers where id = ${xenia.id}`,
    );
    await insertCopies(
      'customer_cards',
      common,
      `1000000 + n, account_id, revision, hash, projection_version,
       state || jsonb_build_object('customerId', 1000000 + n, 'code', n, 'uuid', gen_random_uuid())`,
      `customer_cards where id = ${xenia.card?.id}`,
    );
    await insertCopies(
      'decoy_cards',
      'id, account_id, card_id, customer_id, uuid, sealed, state, confirmed_at',
      `nextval('decoy_cards_id'), account_id, card_id, 1000000 + n, gen_random_uuid(), sealed,
       state || jsonb_build_object('code', n), confirmed_at`,
      `decoy_cards where id = ${second.id}`,
    );
    await insertCopies(
      'passes',
      'customer_card_id, account_id, card_id, tag, changed_at, balance_tag, notification_tag',
      '1000000 + n, account_id, card_id, tag, changed_at, balance_tag, notification_tag',
      `passes where customer_card_id = ${second.id}`,
    );
    // Only now, so that each copy is a person of their own.
    await merge(yves, xenia);
    await follower.waitUntilCaughtUp();
    await service.database.query('vacuum analyze customers, customer_cards, decoy_cards, passes');
    // A plan that reads a whole table fails instead of taking minutes.
    await service.database.query(`set statement_timeout = '20 s'`);
    const statements = new RecordedStatements(service.app.get(Pool, { strict: false }));
    await second.stamp(1);
    expect(await second.read()).toEqual(shows(yves, 1, 'Yves'));
    const plans = await statements.explain(service.database, /decoy_owners|with recursive person/);
    expect(plans.length).toBeGreaterThanOrEqual(4);
    for (const plan of plans) {
      expect(plan).not.toMatch(
        /Seq Scan on (customers|customer_cards|decoy_cards|passes)|Removed by Filter: \d{3,}/,
      );
    }
  });
});

describe('a person at the limit of 100 customers with 1,000 cards', () => {
  it('has the passes of all second cards updated by a stamp and a change of name', async () => {
    const [yves, xenia] = [await createPerson('Yves'), await createPerson('Xenia')];
    const second = await SecondCard.signUp(xenia);
    await second.confirm();
    await merge(yves, xenia);
    await follower.waitUntilCaughtUp();
    // Half of them as a chain, the others beside its end.
    await service.database.query(
      `insert into customers (id, account_id, revision, hash, projection_version, state)
       select 2000000 + n, account_id, revision, hash, projection_version,
         state || jsonb_build_object('mergedInto',
           jsonb_build_object('customerId', case when n < 50 then 2000001 + n else $1 end, 'given', '{}'::jsonb))
       from customers, generate_series(1, 98) n where id = $2`,
      [yves.id, xenia.id],
    );
    await service.database.query(
      `insert into personal_keys (subject_id, wrapped)
       select 2000000 + n, wrapped from personal_keys, generate_series(1, 98) n where subject_id = $1`,
      [xenia.id],
    );
    await service.database.query(
      `insert into decoy_cards (id, account_id, card_id, customer_id, uuid, sealed, state, confirmed_at)
       select c.id, account_id, card_id, 2000001 + n % 98, uuid, sealed,
         state || jsonb_build_object('id', c.id, 'uuid', c.uuid), confirmed_at
       from (select sealed, state, account_id, card_id, confirmed_at from decoy_cards where id = $1) d,
         (select n, nextval('decoy_cards_id') as id, gen_random_uuid() as uuid from generate_series(1, 997) n) c`,
      [second.id],
    );
    await service.database.query(
      `insert into passes (customer_card_id, account_id, card_id, tag, changed_at, balance_tag, notification_tag)
       select d.id, d.account_id, d.card_id, 0, now(), 0, 0 from decoy_cards d
       where d.customer_id between 2000001 and 2000098 on conflict do nothing`,
    );
    await service.database.query('vacuum analyze customers, decoy_cards, passes');
    const readTags = async () => {
      const { rows } = await service.database.query<{ updated: number; tag: number }>(
        `select count(*) filter (where p.tag > 0)::int as updated, min(p.tag)::int as tag
         from passes p join decoy_cards d on d.id = p.customer_card_id
         where d.customer_id between 2000001 and 2000098`,
      );
      return rows[0];
    };
    const statements = new RecordedStatements(service.app.get(Pool, { strict: false }));
    await second.stamp(1);
    await follower.waitUntilCaughtUp();
    const stamped = await readTags();
    expect(stamped?.updated).toBe(997);
    expect(await second.read()).toEqual(shows(yves, 1, 'Yves'));
    await store.send('PATCH', yves.path, { customer: { first_name: 'Yvonne' } });
    await follower.waitUntilCaughtUp();
    expect((await readTags())?.tag).toBeGreaterThan(stamped?.tag ?? Infinity);
    const plans = await statements.explain(service.database, /decoy_owners|with recursive/);
    for (const plan of plans)
      expect(plan).not.toMatch(/Seq Scan on (customers|customer_cards|decoy_cards|passes)/);
  });
});
