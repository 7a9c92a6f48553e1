import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ProcessSession } from '#database/process-session.js';
import { Pool } from 'pg';
import { EventStore } from '#event-store/port/event-store.js';
import { readCheckpoint } from '#event-store/port/checkpoint.js';
import { ReadModels } from '#event-store/read-models/read-models.js';
import { PassContents } from '#passes/pass-contents.service.js';
import { PASS_CHANGES, PassTable } from '#passes/pass-table.service.js';
import { PassUpdates } from '#passes/pass-updates.service.js';
import { Passes } from '#passes/passes.service.js';
import { startService, type LocalService } from '../support/services/service.js';
import { waitUntilReadable } from '../support/database/event-store.js';
import { enrolWithPage } from '../support/browser/web-card.js';

let service: LocalService;

beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.stop());

function createPassTable({ app }: LocalService): PassTable {
  const options = { strict: false };
  const pool = app.get(Pool, options);
  return new PassTable(
    pool,
    app.get(EventStore, options),
    app.get(ReadModels, options),
    app.get(PassContents, options),
    new PassUpdates(pool, app.get(ProcessSession, options)),
    [],
  );
}

describe('the notice of a stamp', () => {
  it('is written even when a refresh has already shown the new balance on the pass', async () => {
    const store = await service.newStore();
    const { page, stamp, card, customerCard } = await enrolWithPage(store);
    await (await fetch(service.baseUrl + page)).text();
    await stamp(2);
    const pool = service.app.get(Pool, { strict: false });
    await pool.query('insert into pass_refreshes (account_id, card_id) values ($1, $2)', [
      store.accountId,
      card.id,
    ]);
    const table = createPassTable(service);
    expect(await table.refresh()).toBe(true);
    const passes = service.app.get(Passes, { strict: false });
    const refreshedPass = await passes.find(customerCard.id);
    expect([refreshedPass?.tag === 0, refreshedPass?.notice]).toEqual([false, null]);
    const from = await readCheckpoint(pool, PASS_CHANGES);
    await waitUntilReadable(service.database);
    const events = await service.app.get(EventStore, { strict: false }).readAll(from, 500);
    await table.advance(from, events.at(-1)?.position ?? from, events);
    const pass = await passes.find(customerCard.id);
    expect(pass?.notice).toEqual({ kind: 'stamped', stamps: 2 });
    expect(pass?.noticeTag).toBeGreaterThan(refreshedPass?.tag ?? 0);
  });
});
