import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { event } from '#platform/event-store/port/event-store.contract.js';
import { EventStore, type JsonObject } from '#platform/event-store/port/event-store.js';
import { ReadModels, toStreamName } from '#platform/event-store/read-models/read-models.js';
import { customerCard } from '#loyalty/stamping/customer-card.js';
import { customerCardReadModel } from '#loyalty/stamping/customer-card.entity.js';
import { createTestEnvironment } from '../support/database/database.js';
import { startProgram } from '../support/services/program.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

const DETAILS = {
  locationId: null,
  staffRef: null,
  externalRef: null,
  silent: false,
  personal: null,
};

let service: LocalService;
let store: Client;

beforeAll(async () => {
  service = await startService();
  store = await service.newStore();
});
afterAll(() => service.stop());

/** Appends an event to a customer card's stream as another version of the program does, and updates the read model. */
async function append(id: number, type: string, version: number, data: JsonObject): Promise<void> {
  const [events, readModels] = [service.app.get(EventStore), service.app.get(ReadModels)];
  const stream = toStreamName(customerCard, id);
  let expected = null;
  for await (const { revision, hash } of events.readStream(stream)) expected = { revision, hash };
  const newEvent = { ...event(type, data), version };
  const meta = { ...newEvent.meta, accountId: store.accountId };
  await events.commit({
    accountId: store.accountId,
    writes: [{ stream, expected, events: [{ ...newEvent, meta }] }],
  });
  await readModels.catchUp(customerCardReadModel, id);
}

async function readVersions(id: number): Promise<[string, number, unknown][]> {
  const versions: [string, number, unknown][] = [];
  const stream = toStreamName(customerCard, id);
  for await (const { type, version, data } of service.app.get(EventStore).readStream(stream)) {
    versions.push([type, version, data['templateVersion']]);
  }
  return versions;
}

async function verify(): Promise<{ code: number | null; output: string }> {
  const environment = createTestEnvironment(service.database.url, service.environment);
  const program = startProgram('dist/apps/cli/verify.js', environment, []);
  return { code: await program.exitCode, output: program.output() };
}

describe('events of several versions in one stream', () => {
  it('are upcast when read, and stored unchanged', async () => {
    const { path, customer, customerCard: card } = await enrol(store, { rewards: [3, 5] });
    const data = { customerId: customer.id, ...DETAILS };
    const oldData = { ...data, stamps: 5, source: 'api', reverses: null };
    await append(card.id, 'StampsEarned', 1, oldData);
    const { body, status } = await store.stamp(path, 2);
    expect({ status, stamps: body.stamps_count }).toEqual({ status: 200, stamps: 7 });
    expect(await readVersions(card.id)).toEqual([
      ['CustomerCardIssued', 1, undefined],
      ['StampsEarned', 1, undefined],
      ['StampsEarned', 3, expect.any(Number)],
      ['RewardUnlocked', 1, undefined],
      ['RewardUnlocked', 1, undefined],
    ]);
    expect(await verify()).toEqual({
      code: 0,
      output: expect.stringContaining('every read model matches'),
    });
  });

  it('store the version of the card’s template that decided them', async () => {
    const { path, customerCard: card, rewards } = await enrol(store, { rewards: [3] });
    await store.stamp(path);
    await store.stamp(path);
    const reward = `${store.store}/rewards/${rewards[0]?.id}`;
    const update = await store.send('PATCH', reward, { reward: { stamps_required: 2 } });
    expect(update.status).toBe(200);
    await store.post(`${path}/redeem`, { reward_id: rewards[0]?.id });
    const templateVersions = (await readVersions(card.id)).flatMap(([, , template]) =>
      template === undefined ? [] : [Number(template)],
    );
    expect(templateVersions).toHaveLength(3);
    const [first = 0] = templateVersions;
    expect(templateVersions).toEqual([first, first, first + 1]);
  });

  it('are rejected when a newer program wrote them', async () => {
    const { customer, customerCard: card } = await enrol(store);
    const data = { customerId: customer.id, ...DETAILS, stamps: 1, source: 'api' };
    await expect(append(card.id, 'StampsEarned', 9, data)).rejects.toThrow(
      /is a StampsEarned of version 9, and this program knows only version 3: upgrade it/,
    );
    // That program has written the read model too.
    await service.database.query(
      'update customer_cards set revision = revision + 1 where id = $1',
      [card.id],
    );
    const { code, output } = await verify();
    expect(output).toContain('is a StampsEarned of version 9');
    expect(code).toBe(1);
  });
});
