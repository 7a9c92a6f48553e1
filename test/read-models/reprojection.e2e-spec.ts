import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { customerCardReadModel } from '#loyalty/stamping/customer-card.entity.js';
import { eventually } from '../support/jest/eventually.js';
import { startService, type Client, type Service } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { useWebhooks } from '../support/services/webhook-dispatcher.js';

let service: Service;
let store: Client;
const { queryRows, startDispatcher } = useWebhooks(() => service);
const { projectionVersion } = customerCardReadModel;

beforeAll(async () => {
  service = await startService();
  store = await service.newStore();
});
afterAll(() => service.stop());

type Row = { id: number; projection_version: number; revision: number; state: object };

const findRows = (ids: number[]) =>
  queryRows<Row>(
    'select id, projection_version, revision, state from customer_cards where id = any ($1) order by id',
    ids,
  );

it('dispatchers reproject read models of an older projection version, and leave newer ones unchanged', async () => {
  const ids: number[] = [];
  for (let i = 0; i < 5; i++) {
    const { path, customerCard } = await enrol(store, { rewards: [2] });
    await store.stamp(path, 3);
    ids.push(customerCard.id);
  }
  const [newer = 0, ahead = 0, ...older] = ids;
  const before = await findRows(older);
  await queryRows(
    `update customer_cards set projection_version = 1, state = state - 'stampings' where id = any ($1)`,
    [...older, ahead],
  );
  // One was written by a newer version. Another is ahead of its stream, as after a partial restore.
  await queryRows('update customer_cards set projection_version = 99 where id = $1', newer);
  await queryRows('update customer_cards set revision = revision + 5 where id = $1', ahead);
  const newerRows = await findRows([newer, ahead]);

  const dispatchers = await Promise.all([startDispatcher(), startDispatcher()]);
  await eventually(
    () => findRows(older),
    (result) => result.every(({ projection_version }) => projection_version === projectionVersion),
  );
  expect(await findRows(older)).toEqual(before);
  await eventually(
    () => dispatchers.map((dispatcher) => dispatcher.output()).join(''),
    (output) =>
      output.includes(`customer_cards ${ahead} stays as an older projection made it`) &&
      /\d rows of customer_cards were projected again/.test(output),
  );
  expect(await findRows([newer, ahead])).toEqual(newerRows);
});
