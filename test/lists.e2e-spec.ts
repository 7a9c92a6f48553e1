import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { RewardJson } from '#rewards/reward.dto.js';
import { AddMember } from '#identity/identity.commands.js';
import { CommandBus } from '@nestjs/cqrs';
import { cli, startService, type Client, type Service } from './support/service.js';
import { enrol } from './support/story.js';

type Refused = { errors: Record<string, string[]> };
type Element = { id: number };

const PUBLIC_URL = 'https://cards.example';

let service: Service;
let store: Client & { email: string };
let lists: string[];

beforeAll(async () => {
  service = await startService();
  store = await service.newStore();
  const other = await service.newStore();
  await service.app.get(CommandBus).execute(new AddMember(cli, other.accountId, store.email));
  const { customer } = await enrol(store, { rewards: [3, 1, 2] });
  const customerCards = `${store.store}/customers/${customer.id}/customer_cards`;
  for (let i = 0; i < 2; i++) {
    const { card } = await enrol(store, { rewards: [5, 4] });
    await store.post(customerCards, { card_id: card.id });
  }
  for (let i = 0; i < 3; i++) {
    await store.post(`${store.store}/webhook_subscriptions`, {
      target_url: `https://example.com/${i}`,
      event: 'stamp.earned',
    });
  }
  lists = [
    '/api/v1/accounts',
    `${store.store}/cards`,
    `${store.store}/rewards`,
    customerCards,
    `${store.store}/webhook_subscriptions`,
  ];
});
afterAll(() => service.stop());

const nextOf = (headers: Headers) =>
  /<https:\/\/cards\.example(.+?)>; rel="next"/.exec(headers.get('link') ?? '')?.[1];

/** Every page, from the first on. */
async function walk<T extends Element>(
  path: string,
  between: () => Promise<unknown> = async () => undefined,
): Promise<T[][]> {
  const pages: T[][] = [];
  for (let next: string | undefined = path; next !== undefined;) {
    const { status, body, headers } = await store.get<T[]>(next);
    expect(status).toBe(200);
    pages.push(body);
    next = nextOf(headers);
    if (next !== undefined) await between();
  }
  return pages;
}

describe('every list', () => {
  it('is whole without parameters, and in pages the same', async () => {
    for (const list of lists) {
      const whole = await store.get<Element[]>(list);
      expect(whole.body.length).toBeGreaterThan(1);
      expect(whole.headers.get('link')).toBeNull();
      const pages = await walk(`${list}?limit=1`);
      expect(pages.every(({ length }) => length === 1)).toBe(true);
      expect(pages.flat()).toEqual(whole.body);
      expect((await walk(`${list}?limit=250`)).flat()).toEqual(whole.body);
    }
  });

  it('goes on to its end with a cursor alone', async () => {
    for (const list of lists) {
      const { body: whole } = await store.get<Element[]>(list);
      const { headers } = await store.get(`${list}?limit=1`);
      const cursor = new URL(nextOf(headers) ?? '', PUBLIC_URL).searchParams.get('cursor');
      const rest = await store.get<Element[]>(`${list}?cursor=${cursor}`);
      expect(rest.body).toEqual(whole.slice(1));
      expect(rest.headers.get('link')).toBeNull();
    }
  });

  it('refuses a limit out of range, and a cursor that is none of its own', async () => {
    const { headers } = await store.get(`${store.store}/rewards?limit=1`);
    const foreign = new URL(nextOf(headers) ?? '', PUBLIC_URL).searchParams.get('cursor') ?? '';
    for (const list of lists) {
      for (const limit of ['0', '-1', '251', '1.5', 'x', '99999999999999999999']) {
        const { status, body } = await store.get<Refused>(`${list}?limit=${limit}`);
        expect([limit, status, Object.keys(body.errors)]).toEqual([limit, 422, ['limit']]);
      }
      const cursors = ['x', '%00', '1', foreign.slice(1), foreign.slice(0, -1), `${foreign}A`];
      if (!list.endsWith('/rewards')) cursors.push(foreign);
      for (const cursor of cursors) {
        const { status, body } = await store.get<Refused>(`${list}?cursor=${cursor}`);
        expect([cursor, status, Object.keys(body.errors)]).toEqual([cursor, 422, ['cursor']]);
      }
    }
  });

  it('keeps its other parameters in the links', async () => {
    const { headers } = await store.get(`${store.store}/cards?limit=1&scope=all&x=%C3%A9+1`);
    const link = new URL(nextOf(headers) ?? '', PUBLIC_URL);
    expect([...link.searchParams.keys()]).toEqual(['limit', 'scope', 'x', 'cursor']);
    expect(link.searchParams.get('x')).toBe('é 1');
    const [reward] = (await store.get<RewardJson[]>(`${store.store}/rewards`)).body;
    const filtered = `${store.store}/rewards?card_id=${reward?.card_id}&active=1`;
    const { body: whole } = await store.get<RewardJson[]>(filtered);
    expect(whole).toHaveLength(3);
    expect((await walk(`${filtered}&limit=1`)).flat()).toEqual(whole);
  });
});

describe('pages', () => {
  it('neither hide nor repeat anything when records come, go and change between them', async () => {
    const mine = await service.newStore();
    const { card } = await enrol(mine, { rewards: [1, 2, 3, 4, 5, 6, 7, 8] });
    const path = `${mine.store}/rewards`;
    const { body: before } = await mine.get<RewardJson[]>(path);
    const first = await mine.get<RewardJson[]>(`${path}?limit=3`);
    const [one, two, three, four] = before;
    // The element that the next page begins behind goes, and so does one before it; another moves up.
    await mine.send('DELETE', `${path}/${three?.id}`);
    await mine.send('DELETE', `${path}/${one?.id}`);
    await mine.send('PATCH', `${path}/${two?.id}`, { reward: { stamps_required: 20 } });
    const reward = { card_id: card.id, name: 'New', stamps_required: 1 };
    await mine.post(path, { reward: { ...reward, position: 0 } });
    await mine.post(path, { reward });
    const second = await mine.get<RewardJson[]>(nextOf(first.headers) ?? '');
    const third = await mine.get<RewardJson[]>(nextOf(second.headers) ?? '');
    expect(second.body[0]).toEqual(four);
    const shown = [first, second, third].flatMap(({ body }) => body.map(({ id }) => id));
    expect(shown.slice(0, 8)).toEqual(before.map(({ id }) => id));
    expect(shown).toHaveLength(9);
    expect(nextOf(third.headers)).toBeUndefined();
  });
});
