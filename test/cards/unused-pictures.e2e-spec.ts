import { afterAll, beforeAll, expect, it } from '@jest/globals';
import sharp from 'sharp';
import type { CardJson } from '#loyalty/cards/card.dto.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';

let service: LocalService;

beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.stop());

const createCard = async (store: Client) =>
  (await store.post<CardJson>(`${store.store}/cards`, { card: { name: 'Coffee' } })).body;

it('deletes pictures that no card shows a day after their upload', async () => {
  const full = await service.newStore();
  const [first, second] = [await createCard(full), await createCard(full)];
  const { database } = service;
  const picture = (i: number) =>
    sharp({ create: { width: 9, height: 9, channels: 3, background: { r: 0, g: i, b: 0 } } })
      .png()
      .toBuffer();
  const countOld = async () => {
    const { rows } = await database.query<{ count: number }>(
      `select count(*)::int as count from pictures where account_id = $1 and created_at < now() - interval '1 hour'`,
      [full.accountId],
    );
    return rows[0]?.count;
  };
  const put = async (path: string, i: number) =>
    (
      await full.send('PUT', `${full.store}/${path}`, new Uint8Array(await picture(i)), {
        'content-type': 'image/png',
      })
    ).status;
  const upload = (id: number, i: number) => put(`cards/${id}/strip_image`, i);
  expect([await upload(first.id, 1), await upload(first.id, 2)]).toEqual([200, 200]);
  await database.query(
    `insert into pictures (hash, account_id, png)
       select lpad(to_hex(n), 64, '0'), $1, '' from generate_series(1, 998) n`,
    [full.accountId],
  );
  await database.query(
    `update pictures set created_at = now() - interval '25 hours' where account_id = $1`,
    [full.accountId],
  );
  expect(await upload(second.id, 4)).toBe(200);
  // The strip of the first card.
  expect(await countOld()).toBe(1);
  expect(await upload(second.id, 2)).toBe(200);
  expect(await countOld()).toBe(0);
});
