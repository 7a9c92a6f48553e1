import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { DataSource, type EntityManager } from 'typeorm';
import { inTransaction, query } from '#platform/database/connection.js';
import { createDataSource, getPool } from '#platform/database/data-source.js';
import { SecondConnectionError } from '#platform/database/database-waits.js';
import { AuditedWrites } from '#platform/event-store/commands/audited-writes.service.js';
import { EventStore } from '#platform/event-store/port/event-store.js';
import { ReadModels } from '#platform/event-store/read-models/read-models.js';
import { PassContents } from '#outbound/passes/pass-contents.service.js';
import { PassTable } from '#outbound/passes/pass-table.service.js';
import { PassUpdates } from '#outbound/passes/pass-updates.service.js';
import { customerCardReadModel } from '#loyalty/stamping/customer-card.entity.js';
import { testConfig } from '../support/database/database.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { Recorder } from '../support/services/pass-dispatcher.js';
import { startService, type LocalService } from '../support/services/service.js';

const POOL_SIZE = 2;

let service: LocalService;
let pool: pg.Pool;

beforeAll(async () => {
  service = await startService({ DATABASE_POOL: String(POOL_SIZE) });
  pool = service.app.get(pg.Pool);
});
afterAll(() => service.stop());

const select = () => query<{ one: number }>(pool, { text: 'select 1 as one' });

describe('a transaction', () => {
  it('is refused a second connection at once, instead of waiting for it', async () => {
    await expect(inTransaction(pool, select)).rejects.toThrow(SecondConnectionError);
    await expect(inTransaction(pool, () => pool.query('select 1'))).rejects.toThrow(
      SecondConnectionError,
    );
    await expect(inTransaction(pool, () => inTransaction(pool, select))).rejects.toThrow(
      SecondConnectionError,
    );
  });

  it('is refused a second connection, and reports a rollback, when TypeORM began it', async () => {
    const writes = service.app.get(AuditedWrites, { strict: false });
    const by = {
      actor: { type: 'system', id: 0 },
      channel: 'system',
      requestId: 'test',
      ipAddress: null,
    } as unknown as Parameters<AuditedWrites['write']>[0];
    await expect(writes.write(by, select)).rejects.toThrow(SecondConnectionError);
    const passOver = async ({ manager }: { manager: EntityManager }) => {
      await manager.query('select 1 / 0').catch(() => undefined);
    };
    await expect(writes.write(by, passOver)).rejects.toThrow('the transaction was rolled back');
  });

  it('gets rows on its own connection, and the pool others afterwards', async () => {
    const rows = await inTransaction(pool, (client) =>
      query<{ one: number }>(client, { text: 'select 1 as one' }),
    );
    expect(rows).toEqual([{ one: 1 }]);
    expect(await select()).toEqual([{ one: 1 }]);
  });

  it('does not keep other transactions from their connections', async () => {
    const rows = await Promise.all(
      Array.from({ length: 3 * POOL_SIZE }, () =>
        inTransaction(pool, (client) => query(client, { text: 'select 1 as one' })),
      ),
    );
    expect(rows).toHaveLength(3 * POOL_SIZE);
  });

  it('is not checked in production', async () => {
    const config = testConfig(service.database.url, service.environment);
    const source: DataSource = createDataSource(
      Object.assign(Object.create(config) as typeof config, { isProduction: true }),
      'test',
    );
    await source.initialize();
    const unchecked = getPool(source);
    expect(
      await inTransaction(unchecked, () => query(unchecked, { text: 'select 1' })),
    ).toHaveLength(1);
    await source.destroy();
  });
});

describe('comparisons of passes', () => {
  it('finish when as many run at once as there are connections', async () => {
    const get = <T>(type: abstract new (...parameters: never[]) => T): T =>
      service.app.get<T>(type, { strict: false });
    const store = await service.newStore();
    const { customerCard } = await enrol(store);
    const row = await get(ReadModels).load(customerCardReadModel, customerCard.id);
    if (!row) throw new Error('it was enrolled');
    await get(PassContents).open(row.state);
    await pool.query("update passes set content_hash = 'another'");
    await pool.query('insert into pass_refreshes (account_id, card_id) values ($1, 0), ($1, $2)', [
      store.accountId,
      customerCard.card_id,
    ]);
    const recorder = new Recorder();
    const tables = Array.from(
      { length: 2 * POOL_SIZE },
      () => new PassTable(pool, get(EventStore), get(PassContents), get(PassUpdates), [recorder]),
    );
    for (let isMore = true; isMore;) {
      const results = await Promise.allSettled(tables.map((table) => table.refresh()));
      isMore = results.some((result) => result.status === 'rejected' || result.value);
    }
    const { rows } = await pool.query('select content_hash = $1 as is_old from passes', [
      'another',
    ]);
    expect(rows).toEqual([{ is_old: false }]);
    expect((await pool.query('select from pass_refreshes')).rowCount).toBe(0);
  });
});
