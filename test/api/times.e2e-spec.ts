import { describe, expect, it } from '@jest/globals';
import type { CardJson } from '#loyalty/cards/card.dto.js';
import type { CustomerListJson } from '#loyalty/customers/customer-list.dto.js';
import {
  expectFailure,
  expectRefused,
  useSharedService,
  type ContractClient,
} from '../support/http/contract.js';
import { eventually } from '../support/jest/eventually.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

const service = useSharedService();
const A_DAY = 86_400_000;
const store = service.useStore();

const card = (expires_at: unknown, at = store) =>
  at.post<CardJson>(`${at.store}/cards`, { card: { name: 'Coffee', expires_at } });
const expiry = async (expires_at: string, at = store) => {
  const { status, body } = await card(expires_at, at);
  expect([expires_at, status]).toEqual([expires_at, 201]);
  return body.expires_at;
};
/** As a client sends it that does not know which characters a query must encode. */
const plainQuery = (path: string, name: string, value: string) =>
  `${path}?${name}=${value.replaceAll(' ', '%20')}`;

/** Every query of a store that takes times, with the names of those. */
async function timedQueries(at: ContractClient): Promise<[string, string[]][]> {
  const { path, customer, card: template, rewards } = await enrol(at, { rewards: [1] });
  await at.stamp(path, 2);
  await at.post(`${path}/redeem`, { reward_id: rewards[0]?.id });
  const { body: hook } = await at.post<{ id: number }>(`${at.store}/webhook_subscriptions`, {
    events: ['*'],
    target_url: 'https://example.com/hook',
  });
  return [
    [`${at.store}/history`, ['from', 'to']],
    [`${path}/events`, ['from', 'to']],
    [`${at.store}/audit`, ['from', 'to']],
    [`${at.store}/redemptions`, ['from', 'to']],
    [`${at.store}/webhook_subscriptions/${hook.id}/deliveries`, ['from', 'to']],
    [`${at.store}/customers`, ['updated_since']],
    [at.store, ['as_of']],
    ['/api/v1/accounts', ['as_of']],
    [`${at.store}/cards`, ['as_of']],
    [`${at.store}/cards/${template.id}`, ['as_of']],
    [`${at.store}/rewards`, ['as_of']],
    [`${at.store}/rewards/${rewards[0]?.id}`, ['as_of']],
    [`${at.store}/customers/${customer.id}`, ['as_of']],
    [`${at.store}/customers/${customer.id}/customer_cards`, ['as_of']],
    [path, ['as_of']],
  ];
}

describe('a time', () => {
  it('CONV-57 A time may have the offset `Z`, `+hh`, `+hhmm` or `+hh:mm`, with small letters too, and is UTC without one', async () => {
    for (const [input, meant] of [
      ['2090-05-31T12:00:00Z', '2090-05-31T12:00:00.000Z'],
      ['2090-05-31t12:00:00.5z', '2090-05-31T12:00:00.500Z'],
      ['2090-05-31T12:00:00', '2090-05-31T12:00:00.000Z'],
      ['2090-05-31 12:00', '2090-05-31T12:00:00.000Z'],
      ['2090-05-31T12:00:00+02', '2090-05-31T10:00:00.000Z'],
      ['2090-05-31T12:00:00+0200', '2090-05-31T10:00:00.000Z'],
      ['2090-05-31T12:00:00+02:00', '2090-05-31T10:00:00.000Z'],
      ['2090-05-31 12:00:00.123456+00', '2090-05-31T12:00:00.123Z'],
      ['2090-05-31T12:00-09:30', '2090-05-31T21:30:00.000Z'],
      ['2090-05-31T12:00-03', '2090-05-31T15:00:00.000Z'],
      [' 2090-05-31T24:00:00+00 ', '2090-06-01T00:00:00.000Z'],
    ] as const) {
      expect([input, await expiry(input)]).toEqual([input, meant]);
    }
    for (const input of [
      '2090-05-31T12:00:00+2',
      '2090-05-31T12:00:00+25:00',
      '2090-05-31T12:00:00+02:60',
      '2090-05-31T12:00:00+02:00:00',
      '2090-05-31+02:00',
      '2090-05-31T12:00:00ZZ',
      '2090-05-31T12:00:00 UTC',
      '2090-05-31T12',
    ]) {
      expectRefused(await card(input), 'expires_at');
    }
  });

  it('CONV-58 A time is understood with a space in place of the `+` of its offset, which is what a `+` means in a query', async () => {
    for (const [input, meant] of [
      ['2090-05-31T12:00:00 02:00', '2090-05-31T10:00:00.000Z'],
      ['2090-05-31T12:00:00.25 0200', '2090-05-31T10:00:00.250Z'],
      ['2090-05-31 12:00 02', '2090-05-31T10:00:00.000Z'],
    ] as const) {
      expect(await expiry(input)).toBe(meant);
    }
    const at = await service.newStore();
    const queries = await timedQueries(at);
    // From here on every record is there.
    const past = new Date().toISOString();
    for (const [path, names] of queries) {
      for (const name of names) {
        for (const offset of ['+00:00', '+0000', '+00']) {
          const plain = past.replace('Z', offset);
          const asMeant = await at.get(`${path}?${name}=${encodeURIComponent(plain)}`);
          const asTyped = await at.get(plainQuery(path, name, plain));
          expect([path, name, asTyped.status]).toEqual([path, name, 200]);
          expect(asTyped.body).toEqual(asMeant.body);
        }
      }
    }
    const { path } = await enrol(at);
    const soon = new Date(Date.now() + 120_000).toISOString().replace('Z', ' 00');
    const stamped = await at.stamp(path, { occurred_at: soon });
    expect(stamped.status).toBe(200);
  });

  it('CONV-59 A time outside the years 1 to 9999 in any time zone is 422 on its field: from 0001-01-01T15:57:00Z to 9999-12-31T09:59:59.999Z all are inside', async () => {
    const at = await service.newStore({ timeZone: 'Pacific/Kiritimati' });
    for (const expires_at of [
      '9999-12-31T23:59:59Z',
      '9999-12-31T23:59:59.999Z',
      '9999-12-31T10:00:00Z',
      '9999-12-31T23:59:59-12:00',
      '0001-01-01T00:00:00Z',
      '0001-01-01T00:00:00+14:00',
      '0000-12-31T00:00:00Z',
      '-000001-01-01T00:00:00Z',
      '+010000-01-01T00:00:00Z',
    ]) {
      for (const client of [store, at]) expectRefused(await card(expires_at, client), 'expires_at');
    }
    expect(await expiry('9999-12-31', at)).toBe('9999-12-31T09:59:59.999Z');
    expectRefused(await card('9999-12-31'), 'expires_at');
    expect(await expiry('9999-12-31T09:59:59Z')).toBe('9999-12-31T09:59:59.000Z');
    expect(await expiry('0001-01-01T15:57:00Z')).toBe('0001-01-01T15:57:00.000Z');
    expect(await expiry('0001-01-02')).toBe('0001-01-02T23:59:59.999Z');
    for (const [path, names] of await timedQueries(at)) {
      for (const name of names) {
        for (const time of ['0001-01-01T00:00:00Z', '9999-12-31T23:59:59Z']) {
          expectRefused(await at.get(`${path}?${name}=${time}`), name);
        }
        const first = await at.get(`${path}?${name}=0001-01-01T15:57:00Z`);
        expect([path, [200, 404].includes(first.status)]).toEqual([path, true]);
        const last = await at.get(`${path}?${name}=9999-12-31T09:59:59Z`);
        // A moment in the future is nothing that a record can be shown at.
        expect([path, last.status]).toEqual([path, name === 'as_of' ? 422 : 200]);
      }
    }
  });
});

const dayAfter = (day: string, days: number) =>
  new Date(Date.parse(day) + days * A_DAY).toISOString().slice(0, 10);

describe('a date without a time', () => {
  it("CONV-60 A date without a time means, in the store's time zone, the end of that day for `expires_at`, the start of the next for `to`, else the start of it", async () => {
    for (const [zone, input, end] of [
      ['America/Los_Angeles', '2026-12-31', '2027-01-01T07:59:59.999Z'],
      ['Europe/Berlin', '2028-02-29', '2028-02-29T22:59:59.999Z'],
      ['Asia/Kathmandu', '2026-12-31', '2026-12-31T18:14:59.999Z'],
      ['Africa/Cairo', '2026-04-23', '2026-04-23T21:59:59.999Z'],
      ['Pacific/Apia', '2011-12-29', '2011-12-30T09:59:59.999Z'],
    ] as const) {
      const at = await service.newStore({ timeZone: zone });
      expect(await expiry(input, at)).toBe(end);
      const { body } = await card(null, at);
      const path = `${at.store}/cards/${body.id}`;
      const changed = await at.patch<CardJson>(path, { card: { expires_at: ` ${input} ` } });
      expect(changed.body.expires_at).toBe(end);
    }
    expectRefused(await card('2027-02-29'), 'expires_at');
    const findDay = (timeZone: string, inMs = 0) =>
      new Intl.DateTimeFormat('en-CA', { timeZone }).format(Date.now() + inMs);
    // Whatever time it is, one of the two has another day than UTC, and that does not end soon.
    const zones = ['Pacific/Kiritimati', 'Pacific/Midway'].filter(
      (zone) => findDay(zone) === findDay(zone, 10 * 60_000),
    );
    for (const timeZone of zones) {
      const at = await service.newStore({ timeZone });
      const queries = await timedQueries(at);
      const today = findDay(timeZone);
      const [yesterday, tomorrow] = [dayAfter(today, -1), dayAfter(today, 1)];
      const count = async (path: string, query: string) => {
        const { body } = await at.get<unknown[] | CustomerListJson>(`${path}?${query}`);
        return Array.isArray(body) ? body.length : body.customers.length;
      };
      const isEmpty = async (path: string, query: string) => (await count(path, query)) === 0;
      const lists = queries.filter(
        ([path, names]) => names.includes('to') && !path.endsWith('/deliveries'),
      );
      for (const [path] of lists) {
        const all = await count(path, '');
        expect([path, all > 0]).toEqual([path, true]);
        for (const query of [`from=${today}`, `to=${today}`, `from=${today}&to=${today}`]) {
          expect([path, query, await count(path, query)]).toEqual([path, query, all]);
        }
        for (const query of [`from=${tomorrow}`, `from=${today}&to=${today}&to=${yesterday}`]) {
          expect([path, query, await isEmpty(path, query)]).toEqual([path, query, true]);
        }
      }
      expect(await count(`${at.store}/customers`, `updated_since=${today}`)).toBe(1);
      expect(await isEmpty(`${at.store}/customers`, `updated_since=${tomorrow}`)).toBe(true);
      const records = queries.filter(
        ([path, names]) => names.includes('as_of') && /\d$/.test(path),
      );
      for (const [path] of records) {
        // The day began before the record did.
        expectFailure(await at.get(`${path}?as_of=${today}`), 404, 'not_found');
        expectRefused(await at.get(`${path}?as_of=${tomorrow}`), 'as_of');
      }
      const hook = queries.find(([path]) => path.endsWith('/deliveries'))?.[0] ?? '';
      const replay = async (body: object) =>
        eventually(
          () => at.post<{ matched: number }>(hook.replace('deliveries', 'replay'), body),
          // The one before it may still be running.
          ({ status }) => status !== 422,
        );
      expect((await replay({ from: today, to: today })).body.matched).toBeGreaterThan(0);
      expect((await replay({ from: yesterday, to: yesterday })).body.matched).toBe(0);
      const backwards = { from: tomorrow, to: yesterday };
      expectRefused(await at.post(hook.replace('deliveries', 'replay'), backwards), 'to');
    }
  });

  it('CONV-61 A date without a time is checked together with all other fields, also under `handling=strict`', async () => {
    const at = await service.newStore({ timeZone: 'America/Los_Angeles' });
    const body = { card: { expires_at: '2026-12-31', nmae: 'Coffee' } };
    const strict = { prefer: 'handling=strict' };
    expectRefused(await at.send('POST', `${at.store}/cards`, body, strict), ['name', 'nmae']);
    const out = { card: { expires_at: '9999-12-31' } };
    expectRefused(await at.post(`${at.store}/cards`, out), ['name', 'expires_at']);
    const { path } = await enrol(at);
    const days = new Intl.DateTimeFormat('en-CA', { timeZone: 'America/Los_Angeles' });
    // Before the card was issued.
    for (const query of ['', '?dry_run=true']) {
      const occurred_at = days.format(new Date(Date.now() - 24 * 3_600_000));
      expectRefused(
        await at.post(`${path}/stamp${query}`, { stamps: 1, occurred_at }),
        'occurred_at',
      );
    }
  });
});
