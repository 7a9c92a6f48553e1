import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { OvertakenError } from '#event-store/port/checkpoint.js';
import { event } from '#event-store/port/event-store.contract.js';
import { EventStore } from '#event-store/port/event-store.js';
import { formatPosition } from '#event-store/port/position.js';
import type { Client } from './support/services/service.js';
import { startService, type LocalService } from './support/services/service.js';
import { testConfig } from './support/database/database.js';
import { eventually } from './support/jest/eventually.js';
import { openHistory } from './support/services/history.js';
import { useWebhooks } from './support/services/webhook-dispatcher.js';
import { enrol } from './support/fixtures/enrolled-customer.js';

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

const rows = async (): Promise<Row[]> =>
  (await service.database.query<Row>('select * from history order by seq')).rows;

/** Runs it until the test ends. */
function fill(): void {
  const stopping = new AbortController();
  const running = history.subscription.run(stopping.signal);
  stops.push(async () => {
    stopping.abort();
    await running;
  });
}

async function filled(): Promise<Row[]> {
  const events = await service.history();
  return eventually(rows, (result) => result.length >= events.length);
}

/** Every command that there is, once at least. */
async function aDay() {
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

describe('the table of the history', () => {
  it('has every event once, in the order of the log, numbered without gaps', async () => {
    await aDay();
    fill();
    const storedRows = await filled();
    const events = await service.history();
    expect(storedRows.map(({ seq }) => seq)).toEqual(events.map((_, i) => i));
    expect(storedRows.map(({ event_id }) => event_id)).toEqual(events.map(({ id }) => id));
    expect(storedRows.map(({ position }) => position)).toEqual(
      events.map(({ position }) => formatPosition(position)),
    );
    const day = await aDay();
    const more = await filled();
    const ofCard = more.filter(({ card_id: id }) => id === day.card.id);
    expect(ofCard.map(({ name, stamps, balance }) => [name, stamps, balance])).toEqual([
      ['card.created', null, null],
      ['reward.created', null, null],
      ['customer_card.created', null, 0],
      ['stamp.earned', 1, 1],
      ['stamp.earned', 4, 5],
      ['reward.unlocked', null, 5],
      ['reward.redeemed', -2, 3],
      ['card.archived', null, null],
    ]);
    expect(ofCard.slice(2, -1).map((row) => row['customer_id'])).toEqual(
      Array.from({ length: 5 }, () => day.customer.id),
    );
    expect(ofCard[4]).toMatchObject({ location_id: day.location.id, channel: 'api' });
    expect(JSON.stringify(more)).not.toMatch(/Anna|Main Street|@example/);
  });

  it('is written once, even with several dispatchers of which some are killed', async () => {
    await Promise.all([startDispatcher(), startDispatcher()]);
    await aDay();
    await filled();
    const dispatcher = await startDispatcher();
    await dispatcher.kill('SIGKILL');
    await aDay();
    const storedRows = await filled();
    const events = await service.history();
    expect(storedRows.map(({ event_id }) => event_id)).toEqual(events.map(({ id }) => id));
  });

  it('ignores a process that lost the lead', async () => {
    fill();
    await filled();
    const { position, end } = await history.table.getProgress();
    const before = await rows();
    await aDay();
    await filled();
    const events = (await service.history()).slice(before.length);
    const last = events.at(-1);
    if (!last) throw new Error('nothing has happened');
    const entries = await history.table.createNextEntries(events, end);
    await expect(history.table.add(position, last.position, entries, end)).rejects.toThrow(
      OvertakenError,
    );
    expect(await rows()).toHaveLength(before.length + events.length);
  });

  it('stops before an event of a newer version, which it could never add later', async () => {
    const painted = event('CardPainted');
    const stream = 'card-900000000000';
    const events = service.app.get(EventStore, { strict: false });
    const first = await startDispatcher();
    await filled();
    await events.commit({
      accountId: store.accountId,
      writes: [{ stream, expected: null, events: [painted] }],
    });
    await aDay();
    const line = `type CardPainted of event ${painted.id}; the history stands still`;
    await eventually(first.output, (text) => text.includes(line));
    const log = await service.history();
    const index = log.findIndex(({ id }) => id === painted.id);
    expect(await rows()).toHaveLength(index);
  });
});
