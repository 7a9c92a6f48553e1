import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { CommandPipeline } from '#platform/event-store/commands/handle-command.js';
import { ReadModels } from '#platform/event-store/read-models/read-models.js';
import {
  SetImportedStamps,
  SetImportedStampsHandler,
} from '#loyalty/stamping/imported-stamps.commands.js';
import { IMPORT_CHANNEL } from '#loyalty/stamping/customer-card.js';
import { TemplatesService } from '#loyalty/stamping/templates.service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';

let service: LocalService;
let store: Client;
let handler: SetImportedStampsHandler;

beforeAll(async () => {
  service = await startService();
  store = await service.newStore();
  const get = <T>(type: abstract new (...args: never[]) => T): T =>
    service.app.get<T>(type, { strict: false });
  handler = new SetImportedStampsHandler(
    get(CommandPipeline),
    get(TemplatesService),
    get(ReadModels),
  );
});
afterAll(() => service.stop());

type Enrolment = Awaited<ReturnType<typeof enrol>>;

function importStamps({ customer, customerCard }: Enrolment, stamps: number): Promise<boolean> {
  const context = {
    accountId: store.accountId,
    actor: { type: 'system', id: 0 },
    channel: IMPORT_CHANNEL,
    requestId: 'test',
  };
  const path = { customerId: customer.id, id: customerCard.id };
  return handler.execute(new SetImportedStamps(context, path, { stamps, reason: 'Import' }));
}

const readBalance = ({ path }: Enrolment) => store.readBalance(path);

it('the same stamps count once when rows of one customer are applied together', async () => {
  const enrolment = await enrol(store);
  // The first is committed alone, and those that wait meanwhile are decided and committed as one group.
  const changes = await Promise.all([2, 5, 5, 5].map((stamps) => importStamps(enrolment, stamps)));
  expect(changes).toEqual([true, true, false, false]);
  expect(await readBalance(enrolment)).toBe(5);
});

it('the last number counts when rows of one customer differ', async () => {
  const enrolment = await enrol(store);
  await Promise.all([1, 7, 3, 4].map((stamps) => importStamps(enrolment, stamps)));
  expect(await readBalance(enrolment)).toBe(4);
});

it('stamps of cards that were merged into one count with it, and not after the merge is undone', async () => {
  const [one, two, three] = [await enrol(store), await enrol(store), await enrol(store)];
  const enrolments: Enrolment[] = [one];
  for (const { customer } of [two, three]) {
    const path = `${store.store}/customers/${customer.id}/customer_cards`;
    const { body } = await store.post<Enrolment['customerCard']>(path, { card_id: one.card.id });
    enrolments.push({ ...one, customer, customerCard: body, path: `${path}/${body.id}` });
  }
  const [survivor, second, third] = enrolments as [Enrolment, Enrolment, Enrolment];
  for (const enrolment of enrolments) await importStamps(enrolment, 2);
  const merge = async (into: Enrolment, from: Enrolment, action = 'merge') => {
    const path = `${store.store}/customers/${into.customer.id}/${action}`;
    expect((await store.post(path, { from_customer_id: from.customer.id })).status).toBe(200);
  };
  await merge(second, third);
  await merge(survivor, second);
  expect(await Promise.all([6, 6].map((stamps) => importStamps(survivor, stamps)))).toEqual([
    false,
    false,
  ]);
  expect(await importStamps(survivor, 7)).toBe(true);
  expect(await readBalance(survivor)).toBe(7);
  await merge(survivor, second, 'unmerge');
  expect(await importStamps(survivor, 3)).toBe(false);
  expect(await importStamps(second, 4)).toBe(false);
});
