import { beforeAll, describe, expect, it } from '@jest/globals';
import type { CardJson } from '#loyalty/cards/card.dto.js';
import { AddMember } from '#identity/member.commands.js';
import { expectRefused, useSharedService } from '../support/http/contract.js';
import { eventually } from '../support/jest/eventually.js';
import { cli, type ApiResponse } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

type Record = { id: number };

const service = useSharedService();
const store = service.useStore();
/** The path of every list that is an array, each with at least five elements. */
let lists: string[];

beforeAll(async () => {
  const first = await enrol(store, { rewards: [3, 1] });
  const { card, customer } = first;
  for (let i = 0; i < 4; i++) {
    const { body: next } = await store.post<CardJson>(`${store.store}/cards`, {
      card: { name: `Card ${i}` },
    });
    await store.post(`${store.store}/customers/${customer.id}/customer_cards`, {
      card_id: next.id,
    });
    for (const card_id of [next.id, card.id]) {
      const reward = { card_id, name: `Reward ${i}`, stamps_required: 5 - i, position: 2 };
      await store.post(`${store.store}/rewards`, { reward });
    }
  }
  for (let i = 0; i < 5; i++) {
    const location = { name: `Shop ${i}`, address: `Main Street ${i}` };
    await store.post(`${store.store}/locations`, { location });
    await store.post(`${store.store}/posters`, { poster: { card_id: card.id } });
    const hook = { events: ['*'], target_url: `https://example.com/${i}` };
    await store.post(`${store.store}/webhook_subscriptions`, hook);
  }
  for (let i = 0; i < 4; i++) {
    const { accountId } = await service.newStore();
    await service.running.execute(new AddMember(cli, accountId, store.email, 'owner'));
  }
  await eventually(
    async () => (await store.get<Record[]>('/api/v1/accounts')).body.length,
    (stores) => stores === 5,
  );
  lists = [
    '/api/v1/accounts',
    `${store.store}/cards`,
    `${store.store}/rewards`,
    `${store.store}/locations`,
    `${store.store}/posters`,
    `${store.store}/webhook_subscriptions`,
    `${store.store}/customers/${customer.id}/customer_cards`,
  ];
});

const idsOf = ({ body }: ApiResponse<Record[]>) => body.map(({ id }) => id);

/** The path and query of the next page, or null. */
function nextOf({ headers }: ApiResponse<unknown>): string | null {
  const links = (headers.get('link') ?? '').split(/,\s*(?=<)/);
  const next = links.find((link) => /;\s*rel="next"/.test(link));
  if (next === undefined) return null;
  const target = /^<([^>]+)>/.exec(next)?.[1];
  const { pathname, search } = new URL(target ?? '', 'https://cards.example');
  return pathname + search;
}

const cursorOf = (next: string | null) =>
  new URL(next ?? '', 'https://cards.example').searchParams.get('cursor') ?? '';

async function pages(first: string): Promise<number[][]> {
  const pagesOfIds: number[][] = [];
  for (let path: string | null = first; path !== null;) {
    const page: ApiResponse<Record[]> = await store.get<Record[]>(path);
    expect(page.status).toBe(200);
    pagesOfIds.push(idsOf(page));
    expect(pagesOfIds.length).toBeLessThan(50);
    path = nextOf(page);
  }
  return pagesOfIds;
}

describe('lists', () => {
  it('LIST-01 Lists of stores, cards, rewards, locations, posters, webhook subscriptions and customer cards are bare arrays', async () => {
    for (const list of lists) {
      const { status, body } = await store.get<Record[]>(list);
      expect([list, status, Array.isArray(body)]).toEqual([list, 200, true]);
      expect(body.length).toBeGreaterThanOrEqual(5);
    }
  });

  it('LIST-02 An empty list is an empty array', async () => {
    const empty = await service.newStore();
    const customer = { first_name: 'Anna', email: 'anna@example.com' };
    const { body } = await empty.post<Record>(`${empty.store}/customers`, { customer });
    const under = ['cards', 'rewards', 'locations', 'posters', 'webhook_subscriptions'];
    for (const list of [...under, `customers/${body.id}/customer_cards`]) {
      const response = await empty.get(`${empty.store}/${list}`);
      expect([list, response.status, response.text]).toEqual([list, 200, '[]']);
    }
  });

  it('LIST-03 Without `limit` and `cursor` the whole list is returned, without a `Link`; only one larger than about 4 MiB goes on (LIST-14)', async () => {
    const big = await service.newStore();
    for (let i = 0; i < 300; i += 50) {
      const creations = Array.from({ length: 50 }, () =>
        big.post(`${big.store}/cards`, { card: { name: 'Coffee' } }),
      );
      await Promise.all(creations);
    }
    const whole = await big.get<Record[]>(`${big.store}/cards`);
    expect([whole.body.length, whole.headers.get('link')]).toEqual([300, null]);
    const largestPage = await big.get<Record[]>(`${big.store}/cards?limit=250`);
    expect(largestPage.body).toEqual(whole.body.slice(0, 250));
  });

  it('LIST-04 `limit` is the maximum number of elements, from 1 to 250', async () => {
    for (const list of lists) {
      const { body: whole } = await store.get<Record[]>(list);
      for (const limit of [1, 2, 250]) {
        const page = await store.get<Record[]>(`${list}?limit=${limit}`);
        expect([list, page.body]).toEqual([list, whole.slice(0, limit)]);
      }
    }
  });

  it('LIST-05 A `limit` that is not an integer or out of range is 422 `limit`', async () => {
    for (const list of lists) {
      for (const limit of ['0', '-1', '251', '1.5', 'x', '99999999999999999999']) {
        expectRefused(await store.get(`${list}?limit=${limit}`), 'limit');
      }
    }
  });

  it('LIST-06 While there are more elements, the `Link` header has a target with `rel="next"`', async () => {
    for (const list of lists) {
      const next = nextOf(await store.get(`${list}?limit=2`));
      expect(next).toContain(`${list}?`);
      expect(next).toContain('cursor=');
      const { body: whole } = await store.get<Record[]>(list);
      const rest = await store.get(`${list}?cursor=${cursorOf(next)}`);
      expect([rest.body, rest.headers.get('link')]).toEqual([whole.slice(2), null]);
    }
  });

  it('LIST-07 The last page has no target with `rel="next"`', async () => {
    for (const list of lists) {
      const whole = idsOf(await store.get<Record[]>(list));
      const all = await store.get(`${list}?limit=${whole.length}`);
      expect([list, all.headers.get('link')]).toEqual([list, null]);
      expect(nextOf(await store.get(`${list}?limit=${whole.length - 1}`))).not.toBeNull();
    }
  });

  it('LIST-08 For every list, following the links returns each element once, in the order of the whole list', async () => {
    for (const list of lists) {
      const whole = idsOf(await store.get<Record[]>(list));
      for (const limit of [1, 2, 3]) {
        const pagesOfIds = await pages(`${list}?limit=${limit}`);
        expect([list, pagesOfIds.flat()]).toEqual([list, whole]);
        expect(pagesOfIds).toHaveLength(Math.ceil(whole.length / limit));
      }
    }
  });

  it('LIST-09 The `Link` to the next page keeps the filters', async () => {
    const rewards = `${store.store}/rewards`;
    const { body } = await store.get<{ id: number; card_id: number }[]>(rewards);
    const card = body[0]?.card_id;
    const expectedIds = body.filter((reward) => reward.card_id === card).map(({ id }) => id);
    expect(expectedIds.length).toBeLessThan(body.length);
    expect((await pages(`${rewards}?card_id=${card}&limit=2`)).flat()).toEqual(expectedIds);
    const archived = await store.post<CardJson>(`${store.store}/cards`, { card: { name: 'Old' } });
    await store.post(`${store.store}/cards/${archived.body.id}/archive`);
    const all = idsOf(await store.get<Record[]>(`${store.store}/cards?scope=all`));
    expect(all).toContain(archived.body.id);
    expect((await pages(`${store.store}/cards?scope=all&limit=2`)).flat()).toEqual(all);
  });

  it('LIST-10 The `Link` to the next page keeps the `limit`', async () => {
    for (const list of lists) {
      const sizes = (await pages(`${list}?limit=2`)).map(({ length }) => length);
      expect(sizes.slice(0, -1).every((size) => size === 2)).toBe(true);
      expect(sizes.length).toBeGreaterThan(2);
    }
  });

  it('LIST-11 A `cursor` that the service did not issue is 422 `cursor`', async () => {
    const cursors = lists.map(async (list) => cursorOf(nextOf(await store.get(`${list}?limit=2`))));
    const responses = await Promise.all(cursors);
    for (const [i, list] of lists.entries()) {
      const cursor = responses[i] ?? '';
      expect(cursor).not.toBe('');
      const foreign = [
        ...responses.filter((otherResponse) => otherResponse !== cursor),
        cursor.slice(1),
        cursor.slice(0, -1),
        `${cursor}A`,
        'x',
        '1',
        '%00',
        '%F0%9F%8E%82',
        `${cursor}!`,
        'bnVsbA',
        'W10',
        'eyJhIjoxfQ',
      ];
      for (const wrong of foreign) {
        expectRefused(await store.get(`${list}?limit=2&cursor=${wrong}`), 'cursor');
      }
    }
  });

  it('LIST-12 A record that is added or removed between two pages causes no other record to be skipped or repeated', async () => {
    const own = await service.newStore();
    const { card, rewards } = await enrol(own, { rewards: [1, 2, 3, 4, 5, 6, 7, 8, 9] });
    const ids = rewards.map(({ id }) => id);
    const list = `${own.store}/rewards`;
    const first = await own.get<Record[]>(`${list}?limit=3`);
    expect(idsOf(first)).toEqual(ids.slice(0, 3));
    // One goes, and so does the one that the next page begins behind; another changes.
    await own.delete(`${list}/${ids[0]}`);
    await own.delete(`${list}/${ids[2]}`);
    await own.patch(`${list}/${ids[1]}`, { reward: { stamps_required: 20 } });
    await own.post(list, {
      reward: { card_id: card.id, name: 'In front', stamps_required: 1, position: 0 },
    });
    const second = await own.get<Record[]>(nextOf(first) ?? '');
    expect(idsOf(second)).toEqual(ids.slice(3, 6));
    const late = await own.post<Record>(list, {
      reward: { card_id: card.id, name: 'Behind', stamps_required: 9 },
    });
    const third = await own.get<Record[]>(nextOf(second) ?? '');
    const fourth = await own.get<Record[]>(nextOf(third) ?? '');
    expect(idsOf(third)).toEqual(ids.slice(6, 9));
    expect([idsOf(fourth), nextOf(fourth)]).toEqual([[late.body.id], null]);
  });

  it('LIST-13 An unknown query parameter is ignored (see CONV-41)', async () => {
    for (const list of lists) {
      const whole = idsOf(await store.get<Record[]>(list));
      expect(idsOf(await store.get<Record[]>(`${list}?colour=red&_=1`))).toEqual(whole);
      const next = nextOf(await store.get(`${list}?limit=1&colour=%C3%A9+1`));
      const { searchParams } = new URL(next ?? '', 'https://cards.example');
      expect(searchParams.get('colour')).toBe('é 1');
    }
  });

  it('LIST-14 A page ends near 4 MiB, one of stores near 16 MiB, whatever its `limit` or without one, and its `Link` goes on', async () => {
    const MIB = 1024 * 1024;
    const big = await service.newStore();
    const list = `${big.store}/rewards`;
    const createdIds: number[] = [];
    for (let i = 0; i < 12; i++) {
      const { body: card } = await big.post<Record>(`${big.store}/cards`, {
        card: { name: 'Tea' },
      });
      const reward = { card_id: card.id, name: 'Cake', stamps_required: 5 };
      const responses = await Promise.all(
        Array.from({ length: 50 }, () =>
          big.post<Record>(list, { reward: { ...reward, description: '🎂'.repeat(2_000) } }),
        ),
      );
      createdIds.push(...responses.map(({ body }) => body.id));
    }
    const listedIds: number[] = [];
    const sizes: number[] = [];
    for (let path: string | null = list; path !== null;) {
      const page: ApiResponse<Record[]> = await big.get<Record[]>(path);
      sizes.push(Buffer.byteLength(page.text) / MIB);
      listedIds.push(...idsOf(page));
      path = nextOf(page);
    }
    const [first] = sizes;
    expect(first).toBeGreaterThan(3.9);
    expect(first).toBeLessThan(4.1);
    expect(sizes).toHaveLength(2);
    expect(listedIds.toSorted((a, b) => a - b)).toEqual(createdIds.toSorted((a, b) => a - b));
    expect(new Set(listedIds).size).toBe(createdIds.length);
    const some = await big.get<Record[]>(`${list}?limit=250`);
    expect(some.body).toHaveLength(250);
  });
});
