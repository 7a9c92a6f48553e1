import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { OvertakenError } from '#platform/event-store/port/subscription-position.js';
import { event } from '#platform/event-store/port/event-store.contract.js';
import { EventStore } from '#platform/event-store/port/event-store.js';
import { formatPosition } from '#platform/event-store/port/position.js';
import type { Client } from '../support/services/service.js';
import { startService, type LocalService } from '../support/services/service.js';
import { testConfig } from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';
import { openHistory } from '../support/services/history.js';
import { useWebhooks } from '../support/services/webhook-dispatcher.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

let service: LocalService;
let store: Client;
let history: Awaited<ReturnType<typeof openHistory>>;
const { startDispatcher } = useWebhooks(() => service);
const stops: (() => Promise<void>)[] = [];

beforeAll(async () => {
  service = await startService();
  store = await service.newStore();
  history = await openHistory(testConfig(service.database.url, service.environment));
});
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});
afterAll(async () => {
  await history.close();
  await service.stop();
});

type Row = Record<string, unknown>;

const readRows = async (): Promise<Row[]> =>
  (await service.database.query<Row>('select * from history order by seq')).rows;

/** Fills the history table until the test ends. */
function fill(): void {
  const controller = new AbortController();
  const run = history.subscription.run(controller.signal);
  stops.push(async () => {
    controller.abort();
    await run;
  });
}

async function untilFilled(): Promise<Row[]> {
  const events = await service.history();
  return eventually(readRows, (result) => result.length >= events.length);
}

/** Sends commands to create, stamp, redeem, archive and update. */
async function sendCommands() {
  const { path, card, customer, rewards } = await enrol(store, {
    card: { initial_stamps: 1 },
    rewards: [2],
  });
  const { body: location } = await store.post<{ id: number }>(`${store.store}/locations`, {
    location: { name: 'Old Town', address: 'Main Street 1' },
  });
  await store.post(`${path}/stamp`, { stamps: 4, location_id: location.id, note: 'for Anna' });
  await store.post(`${path}/redeem`, { reward_id: rewards[0]?.id });
  await store.post(`${store.store}/cards/${card.id}/archive`);
  const references = [{ source: 'pos', external_id: '77' }];
  await store.send('PATCH', `${store.store}/customers/${customer.id}`, {
    customer: { external_references: references },
  });
  return { path, card, customer, location, reward: rewards[0] };
}

describe('the history table', () => {
  it('contains every event once, in the order of the log, numbered without gaps', async () => {
    await sendCommands();
    fill();
    const storedRows = await untilFilled();
    const events = await service.history();
    expect(storedRows.map(({ seq }) => seq)).toEqual(events.map((_, i) => i));
    expect(storedRows.map(({ event_id }) => event_id)).toEqual(events.map(({ id }) => id));
    expect(storedRows.map(({ position }) => position)).toEqual(
      events.map(({ position }) => formatPosition(position)),
    );
    const records = await sendCommands();
    const more = await untilFilled();
    const cardEntries = more.filter(({ card_id: id }) => id === records.card.id);
    expect(cardEntries.map(({ name, stamps, balance }) => [name, stamps, balance])).toEqual([
      ['card.created', null, null],
      ['reward.created', null, null],
      ['customer_card.created', null, 0],
      ['stamp.earned', 1, 1],
      ['stamp.earned', 4, 5],
      ['reward.unlocked', null, 5],
      ['reward.redeemed', -2, 3],
      ['card.archived', null, null],
    ]);
    expect(cardEntries.slice(2, -1).map((row) => row['customer_id'])).toEqual(
      Array.from({ length: 5 }, () => records.customer.id),
    );
    expect(cardEntries[4]).toMatchObject({ location_id: records.location.id, channel: 'api' });
    expect(JSON.stringify(more)).not.toMatch(/Anna|Main Street|@example/);
  });

  it('contains every event once when several dispatchers run and one is killed', async () => {
    await Promise.all([startDispatcher(), startDispatcher()]);
    await sendCommands();
    await untilFilled();
    const dispatcher = await startDispatcher();
    await dispatcher.kill('SIGKILL');
    await sendCommands();
    const storedRows = await untilFilled();
    const events = await service.history();
    expect(storedRows.map(({ event_id }) => event_id)).toEqual(events.map(({ id }) => id));
  });

  it('rejects entries of a dispatcher that is no longer the leader', async () => {
    fill();
    await untilFilled();
    const { position, end } = await history.table.getProgress();
    const before = await readRows();
    await sendCommands();
    await untilFilled();
    const events = (await service.history()).slice(before.length);
    const last = events.at(-1);
    if (!last) throw new Error('there is no new event');
    const { entries } = await history.table.createNextEntries(events, end);
    await expect(history.table.add(position, last.position, entries, end)).rejects.toThrow(
      OvertakenError,
    );
    expect(await readRows()).toHaveLength(before.length + events.length);
  });

  it('stops before an event of a type that this version does not know', async () => {
    const unknownEvent = event('CardPainted');
    const stream = 'card-900000000000';
    const events = service.app.get(EventStore, { strict: false });
    const first = await startDispatcher();
    await untilFilled();
    await events.commit({
      accountId: store.accountId,
      writes: [{ stream, expected: null, events: [unknownEvent] }],
    });
    await sendCommands();
    const line = `type CardPainted of event ${unknownEvent.id}; the history stands still`;
    await eventually(first.output, (text) => text.includes(line));
    const log = await service.history();
    const index = log.findIndex(({ id }) => id === unknownEvent.id);
    expect(await readRows()).toHaveLength(index);
  });
});
