import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Pool } from 'pg';
import { EventStore } from '#event-store/port/event-store.js';
import { readCheckpoint } from '#event-store/port/checkpoint.js';
import { ReadModels } from '#event-store/read-models/read-models.js';
import { PassContents } from '#passes/pass-contents.service.js';
import { PASS_CHANGES, PassTable } from '#passes/pass-table.service.js';
import { PassUpdates } from '#passes/pass-updates.service.js';
import { Passes } from '#passes/passes.service.js';
import { startService, type LocalService } from './support/services/service.js';
import { untilReadable } from './support/database/event-store.js';
import { enrolled } from './support/browser/web-card.js';

let service: LocalService;

beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.stop());

function tableOf({ app }: LocalService): PassTable {
  const of = { strict: false };
  const pool = app.get(Pool, of);
  return new PassTable(
    pool,
    app.get(EventStore, of),
    app.get(ReadModels, of),
    app.get(PassContents, of),
    new PassUpdates(pool),
    [],
  );
}

describe('the notice of a change', () => {
  it('is not lost when a refresh of the card has already seen what the change did', async () => {
    const store = await service.newStore();
    const { page, stamp, card, customerCard } = await enrolled(store);
    await (await fetch(service.baseUrl + page)).text();
    await stamp(2);
    const pool = service.app.get(Pool, { strict: false });
    await pool.query('insert into pass_refreshes (account_id, card_id) values ($1, $2)', [
      store.accountId,
      card.id,
    ]);
    const table = tableOf(service);
    expect(await table.refresh()).toBe(true);
    const passes = service.app.get(Passes, { strict: false });
    const refreshed = await passes.find(customerCard.id);
    expect([refreshed?.tag === 0, refreshed?.notice]).toEqual([false, null]);
    const from = await readCheckpoint(pool, PASS_CHANGES);
    await untilReadable(service.database);
    const events = await service.app.get(EventStore, { strict: false }).readAll(from, 500);
    await table.advance(from, events.at(-1)?.position ?? from, events);
    const noticed = await passes.find(customerCard.id);
    expect(noticed?.notice).toEqual({ kind: 'stamped', stamps: 2 });
    expect(noticed?.noticeTag).toBeGreaterThan(refreshed?.tag ?? 0);
  });
});
