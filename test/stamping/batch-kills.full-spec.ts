import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import type { BatchResultsJson } from '#loyalty/stamping/batch.dto.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { eventually } from '../support/jest/eventually.js';
import { startSecondApi } from '../support/services/second-api.js';
import { startService, type Client, type Service } from '../support/services/service.js';

let service: Service;
let store: Client;

beforeAll(async () => {
  service = await startService();
  store = await service.newStore();
});
afterAll(() => service.stop());

const post = (operations: object[], headers: Record<string, string>, client = store) =>
  client.send<BatchResultsJson>('POST', `${store.store}/batch`, { operations }, headers);

describe('a batch whose process is killed', () => {
  it('adds every stamp once when it is sent again, with the same Idempotency-Key as well', async () => {
    const { program, second } = await startSecondApi(service, store);
    const cards = await Promise.all([enrol(store), enrol(store)]);
    const lockedCard = await enrol(store);
    const balances = () => Promise.all(cards.map(({ path }) => store.readBalance(path)));
    const operations = Array.from({ length: 100 }, (_, i) => ({
      operation: 'stamp',
      customer_card_id: (i < 99 ? cards[i % 2] : lockedCard)?.customerCard.id,
      stamps: 1,
      external_ref: `killed-${i}`,
    }));
    // Keeps the batch from ending.
    const holder = new pg.Client({ connectionString: service.database.url });
    await holder.connect();
    await holder.query('begin');
    await holder.query('select from customer_cards where id = $1 for update', [
      lockedCard.customerCard.id,
    ]);
    const key = { 'idempotency-key': 'killed' };
    const killed = post(operations, key, second).then(
      () => 'responded',
      () => 'cut',
    );
    // How many stamps are added by then depends on how many share a commit with the locked card.
    await eventually(
      () =>
        service.database.query(
          `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
        ),
      ({ rowCount }) => rowCount !== 0,
    );
    await program.kill('SIGKILL');
    expect(await killed).toBe('cut');
    await holder.query('rollback');
    await holder.end();

    // On KurrentDB a card waits until somebody has finished what the killed process had begun.
    const whole = await eventually(
      () => post(operations, {}),
      ({ body }) => body.results.every(({ status }) => status === 200),
    );
    expect(await balances()).toEqual([50, 49]);
    const keyed = await eventually(
      () => post(operations, key),
      ({ status }) => status !== 409,
    );
    expect([keyed.status, keyed.body]).toEqual([200, whole.body]);
    expect(await balances()).toEqual([50, 49]);
  });
});
