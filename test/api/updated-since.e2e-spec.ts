import { describe, expect, it } from '@jest/globals';
import type { CardJson } from '#loyalty/cards/card.dto.js';
import { expectRefused, useSharedService } from '../support/http/contract.js';

const service = useSharedService();
const store = service.useStore();

type Updated = { id: number; updated_at: string };

const query = (parameters: Record<string, string>) => `?${new URLSearchParams(parameters)}`;
const readIds = async (path: string) => (await store.get<Updated[]>(path)).body.map(({ id }) => id);

/** Checks that a list takes `updated_since`. @param change changes a record in a way that its `updated_at` shows */
async function expectUpdatedSince(
  list: string,
  create: (n: number) => Promise<Updated>,
  change: (id: number) => Promise<unknown>,
): Promise<void> {
  const first = await create(1);
  const second = await create(2);
  const third = await create(3);
  const path = `${store.store}/${list}`;
  const since = (updated_since: string, more: object = {}) =>
    readIds(`${path}${query({ updated_since, ...more })}`);
  expect(await since(first.updated_at)).toEqual(
    expect.arrayContaining([first.id, second.id, third.id]),
  );
  await change(second.id);
  const { body } = await store.get<Updated>(`${path}/${second.id}`);
  expect(body.updated_at > third.updated_at).toBe(true);
  expect(await since(body.updated_at)).toEqual([second.id]);
  expect(await since('2100-01-01')).toEqual([]);
  // A date is the start of that day.
  expect(await since('2026-01-01')).toEqual(await readIds(path));
  expect(await readIds(`${path}${query({ updated_since: ' ' })}`)).toEqual(await readIds(path));
  const page = await store.get<Updated[]>(
    `${path}${query({ updated_since: first.updated_at, limit: '1' })}`,
  );
  expect(page.body).toHaveLength(1);
  expect(page.headers.get('link')).toContain('updated_since=');
  for (const time of ['yesterday', '2026-02-30', '0']) {
    expectRefused(await store.get(`${path}${query({ updated_since: time })}`), 'updated_since');
  }
}

async function post<T>(path: string, body: unknown): Promise<T> {
  const response = await store.post<T>(`${store.store}/${path}`, body);
  expect(response.status).toBeLessThan(300);
  return response.body;
}
const patch = (path: string, body: unknown) => store.patch(`${store.store}/${path}`, body);

describe('updated_since', () => {
  it('CARD-58 `updated_since` lists the cards whose `updated_at` is at or after this time; it works with `scope` and `as_of`', async () => {
    await expectUpdatedSince(
      'cards',
      (n) => post('cards', { card: { name: `Card ${n}` } }),
      (id) => patch(`cards/${id}`, { card: { name: 'Changed' } }),
    );
    const { id } = await post<CardJson>('cards', { card: { name: 'Old' } });
    const card = await post<CardJson>(`cards/${id}/archive`, {});
    const path = `${store.store}/cards`;
    const updated_since = card.updated_at;
    expect(await readIds(`${path}${query({ updated_since })}`)).toEqual([]);
    expect(await readIds(`${path}${query({ updated_since, scope: 'all' })}`)).toEqual([id]);
    const as_of = new Date().toISOString();
    await patch(`cards/${id}`, { card: { name: 'Later' } });
    const past = query({ updated_since, as_of, scope: 'all' });
    expect(await readIds(`${path}${past}`)).toEqual([id]);
    const next = new Date(Date.parse(updated_since) + 1).toISOString();
    const later = query({ updated_since: next, as_of, scope: 'all' });
    expect(await readIds(`${path}${later}`)).toEqual([]);
  });

  it('REWARD-32 `updated_since` lists the rewards whose `updated_at` is at or after this time; it works with the other filters and `as_of`', async () => {
    const { id: card_id } = await post<CardJson>('cards', { card: { name: 'Coffee' } });
    const create = (n: number) =>
      post<Updated>('rewards', { reward: { card_id, name: `Cup ${n}`, stamps_required: n } });
    await expectUpdatedSince('rewards', create, (id) =>
      patch(`rewards/${id}`, { reward: { name: 'Changed' } }),
    );
    const last = await create(9);
    const updated_since = last.updated_at;
    const path = `${store.store}/rewards`;
    const filters = { card_id: String(card_id), active: 'true' };
    expect(await readIds(`${path}${query({ updated_since, ...filters })}`)).toEqual([last.id]);
    expect(await readIds(`${path}${query({ updated_since, active: 'false' })}`)).toEqual([]);
    const as_of = new Date().toISOString();
    expect(await readIds(`${path}${query({ updated_since, as_of })}`)).toEqual([last.id]);
    await store.delete(`${path}/${last.id}`);
    expect(await readIds(`${path}${query({ updated_since })}`)).toEqual([]);
    expect(await readIds(`${path}${query({ updated_since, as_of })}`)).toEqual([last.id]);
  });

  it('LOC-30 `updated_since` lists the locations whose `updated_at` is at or after this time', async () => {
    await expectUpdatedSince(
      'locations',
      (n) => post('locations', { location: { name: `Shop ${n}`, address: `Main Street ${n}` } }),
      (id) => patch(`locations/${id}`, { location: { name: 'Changed' } }),
    );
  });

  it('POSTER-43 `updated_since` lists the posters whose `updated_at` is at or after this time; it works with the other filters', async () => {
    const { id: card_id } = await post<CardJson>('cards', { card: { name: 'Coffee' } });
    const create = () => post<Updated>('posters', { poster: { card_id } });
    await expectUpdatedSince('posters', create, (id) =>
      patch(`posters/${id}`, { poster: { title: 'Changed' } }),
    );
    const last = await create();
    const filters = { updated_since: last.updated_at, card_id: String(card_id), active: '1' };
    const path = `${store.store}/posters`;
    expect(await readIds(`${path}${query(filters)}`)).toEqual([last.id]);
    expect(await readIds(`${path}${query({ ...filters, active: '0' })}`)).toEqual([]);
  });
});
