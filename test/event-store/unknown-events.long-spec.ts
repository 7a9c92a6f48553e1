import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { event } from '#platform/event-store/port/event-store.contract.js';
import { EventStore } from '#platform/event-store/port/event-store.js';
import { isAfter, parsePosition } from '#platform/event-store/port/position.js';
import { FAN_OUT_SUBSCRIPTION } from '#outbound/subscriptions/delivery-requests.service.js';
import { eventually } from '../support/jest/eventually.js';
import type { Program } from '../support/services/program.js';
import { startService, type LocalService } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { CUSTOMER_EVENTS, subscribe, useWebhooks } from '../support/services/webhook-dispatcher.js';

const TYPE = 'CardPainted';
const LINE = new RegExp(
  `this version does not know the type ${TYPE} of event [-0-9a-f]+; no webhook`,
);

let service: LocalService;
const { receive, startDispatcher } = useWebhooks(() => service);

beforeAll(async () => {
  service = await startService({ WEBHOOK_ALLOW_INSECURE_TARGETS: 'true' });
});
afterAll(() => service.stop());

const waitForReport = (dispatcher: Program) =>
  eventually(dispatcher.output, (text) => LINE.test(text)).then(() => undefined);

// 1. An api of a newer version writes an event that the dispatchers do not know.
// 2. The leader reaches it. Receivers might want it, so skipping it would lose it for all of them.
// 3. A second dispatcher starts, which might have the newer version: the leader lets it try.
describe('an event of an unknown type', () => {
  it('stops fan-out in front of it, and another dispatcher becomes the leader', async () => {
    const store = await service.newStore();
    const receiver = await receive();
    await subscribe(store, receiver, { events: CUSTOMER_EVENTS });
    const { path } = await enrol(store);
    const first = await startDispatcher();
    await eventually(
      () => receiver.events.length,
      (count) => count === 2,
    );
    const unknownEvent = event(TYPE);
    const events = service.app.get(EventStore, { strict: false });
    const stream = 'card-900000000000';
    await events.commit({
      accountId: store.accountId,
      writes: [{ stream, expected: null, events: [unknownEvent] }],
    });
    expect((await store.stamp(path)).status).toBe(200);
    await Promise.race([
      waitForReport(first),
      eventually(
        () => receiver.events.length,
        (count) => count > 2,
      ),
    ]);
    expect(first.output()).toMatch(LINE);
    const second = await startDispatcher();
    await waitForReport(second);
    expect(receiver.events).toHaveLength(2);
    const [row] = (
      await service.database.query<{ position: string }>(
        'select position from es.positions where subscription = $1',
        [FAN_OUT_SUBSCRIPTION],
      )
    ).rows;
    const [storedEvent] = await events.readEvents([{ stream, revision: 0 }]);
    const position = parsePosition(row?.position ?? '');
    expect(storedEvent && isAfter(storedEvent.position, position)).toBe(true);
  });
});
