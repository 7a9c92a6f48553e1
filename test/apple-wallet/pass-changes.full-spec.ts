import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ProcessSession } from '#platform/database/process-session.js';
import { Pool } from 'pg';
import { EventStore } from '#platform/event-store/port/event-store.js';
import { createLogStep, readPosition } from '#platform/event-store/port/subscription-position.js';
import { PassContents } from '#outbound/passes/pass-contents.service.js';
import { PASS_CHANGES, PassTable } from '#outbound/passes/pass-table.service.js';
import { PassUpdates } from '#outbound/passes/pass-updates.service.js';
import { Passes } from '#outbound/passes/passes.service.js';
import { startService, type LocalService } from '../support/services/service.js';
import { waitUntilReadable } from '../support/database/event-store.js';
import { newPoster, SignupForm } from '../support/browser/signup.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

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
    app.get(PassContents, options),
    new PassUpdates(pool, app.get(ProcessSession, options)),
    [],
  );
}

/** Processes what was committed since the last time. */
async function advance(table: PassTable): Promise<void> {
  const from = await readPosition(service.app.get(Pool, { strict: false }), PASS_CHANGES);
  await waitUntilReadable(service.database);
  const eventStore = service.app.get(EventStore, { strict: false });
  const events = await eventStore.readAll(from, 500);
  await eventStore.waitUntilProjected(events);
  const step = createLogStep(PASS_CHANGES, from, events.at(-1)?.position ?? from);
  await table.advance(step, events);
}

async function finishRefreshes(table: PassTable): Promise<void> {
  while (await table.refresh());
}

describe('the pass of a second card', () => {
  it('shows the balance of the customer once it is confirmed, and follows it', async () => {
    const store = await service.newStore();
    const poster = await newPoster(store);
    const email = 'anna@guest.example';
    const signUp = async (first_name: string) => {
      const form = await SignupForm.open(service.baseUrl, 'https://cards.example', poster);
      const { location } = await form.send({ first_name, email });
      return new URL(location, 'https://cards.example').pathname;
    };
    const own = await signUp('Anna');
    const second = await signUp('Anni');
    const text = await (await fetch(service.baseUrl + second)).text();
    const [, code = ''] = /<span class="code">(\w{8})</.exec(text) ?? [];
    const passes = service.app.get(Passes, { strict: false });
    const contents = service.app.get(PassContents, { strict: false });
    const holder = await passes.findHolder(second.split('/').at(-1) ?? '');
    if (!holder) throw new Error('there is no second card');
    const read = async () => (await contents.load([holder.id])).get(holder.id);
    const table = createPassTable(service);
    await advance(table);
    await finishRefreshes(table);
    const byCode = `${store.store}/customer_cards/by_code/${code}`;
    await store.post(`${byCode}/confirm`);
    const ownId = (await passes.findHolder(own.split('/').at(-1) ?? ''))?.id;
    await store.stamp(byCode, 3);
    await finishRefreshes(table);
    expect(await read()).toMatchObject({
      state: 'valid',
      stampsCount: 3,
      code,
      memberName: 'Anna',
    });
    const refreshedTag = (await passes.find(holder.id))?.tag ?? 0;
    expect(refreshedTag).toBeGreaterThan(0);
    await advance(table);
    const pass = await passes.find(holder.id);
    expect(pass?.notification).toMatchObject({ kind: 'stamped', stamps: 3 });
    expect(pass?.tag).toBeGreaterThan(refreshedTag);
    expect(ownId).toBeLessThan(holder.id);
  });
});

describe('the notification of a stamp', () => {
  it('is written even when a refresh has already shown the new balance on the pass', async () => {
    const store = await service.newStore();
    const { page, stamp, card, customerCard } = await enrol(store);
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
    expect([refreshedPass?.tag === 0, refreshedPass?.notification]).toEqual([false, null]);
    await advance(table);
    const pass = await passes.find(customerCard.id);
    expect(pass?.notification).toEqual({
      kind: 'stamped',
      stamps: 2,
      text: '8 more stamps to a full card.',
      hasCount: true,
      isOwn: false,
    });
    expect(pass?.notificationTag).toBeGreaterThan(refreshedPass?.tag ?? 0);
  });
});
