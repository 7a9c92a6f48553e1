import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Pool } from 'pg';
import { LeaderLock } from '#database/leader-lock.js';
import { ImportRetention } from '#imports/import-retention.service.js';
import { MessageRetention } from '#messages/message-retention.service.js';
import { testConfig } from './support/database/database.js';
import { startService, type LocalService } from './support/services/service.js';

let service: LocalService;
let pool: Pool;

beforeAll(async () => {
  service = await startService();
  pool = service.app.get(Pool, { strict: false });
});
afterAll(() => service.stop());

const configure = (settings: NodeJS.ProcessEnv) =>
  testConfig(service.database.url, { ...service.environment, ...settings });

describe('retention by settings', () => {
  it('deletes finished card links after MESSAGE_RETENTION_DAYS, in batches by an index, and no others', async () => {
    await service.database.query(
      `insert into card_messages (id, account_id, customer_id, requested_at, channel, state, due_at, finished_at)
       select gen_random_uuid(), 1, n, now(), 'email', 'sent', null::timestamptz, now() - interval '31 days'
       from generate_series(1, 1500) n
       union all
       select gen_random_uuid(), 1, n, now(), 'email', 'failed', null, now() - interval '29 days'
       from generate_series(1, 20000) n
       union all
       select gen_random_uuid(), 1, 1, now() - interval '40 days', 'email', 'held', null, null`,
    );
    await service.database.query('analyze card_messages');
    const config = configure({ MESSAGE_RETENTION_DAYS: '30' });
    const retention = new MessageRetention(pool, config);
    const { messageRetentionDays: days } = config;
    expect(days).toBe(30);
    expect([
      await retention.deleteOld(30),
      await retention.deleteOld(30),
      await retention.deleteOld(30),
    ]).toEqual([1000, 500, 0]);
    const { rows } = await service.database.query<{ state: string; count: number }>(
      'select state, count(*)::int as count from card_messages group by 1 order by 1',
    );
    expect(rows).toEqual([
      { state: 'failed', count: 20_000 },
      { state: 'held', count: 1 },
    ]);
    const plan = await service.database.query<{ 'QUERY PLAN': string }>(
      `explain select id from card_messages where finished_at < now() - make_interval(days => 30)
       order by finished_at limit 1000 for update skip locked`,
    );
    expect(plan.rows.map((row) => row['QUERY PLAN']).join('\n')).toContain(
      'card_messages_finished',
    );
  });

  it('deletes no card links without MESSAGE_RETENTION_DAYS', async () => {
    expect(configure({}).messageRetentionDays).toBeNull();
    // Returns at once, as there is nothing to do.
    await new MessageRetention(pool, configure({})).run(new AbortController().signal);
  });

  it('deletes the rows of an import after IMPORT_RETENTION_DAYS', async () => {
    await service.database.query(
      `insert into imports (id, account_id, state, dry_run, format, encoding, columns, rows_total, actor, created_at, updated_at)
       values (900001, 1, 'done', false, 'csv', 'utf-8', '[]', 1, '{}', now() - interval '8 days', now())`,
    );
    const lock = service.app.get(LeaderLock, { strict: false });
    const deleteOldest = (days: string) =>
      new ImportRetention(pool, lock, configure({ IMPORT_RETENTION_DAYS: days })).deleteOldest();
    expect(await deleteOldest('9')).toBe(false);
    expect(await deleteOldest('7')).toBe(true);
    expect(await deleteOldest('7')).toBe(false);
  });

  it('es.forget_audit_addresses removes addresses of the days that it is given, and never within a week', async () => {
    const request = randomUUID();
    await service.database.query(
      `insert into audit_log (type, actor, channel, request_id, ip_address, subject, recorded_at)
       select 'a', '{}', 'api', $1, '192.0.2.7', '{}', now() - make_interval(days => days)
       from unnest(array[0, 6, 8, 31, 89]) days`,
      [request],
    );
    const forget = async (days: number) =>
      (
        await pool.query<{ count: number }>('select es.forget_audit_addresses(1000, $1) as count', [
          days,
        ])
      ).rows[0]?.count;
    expect([await forget(90), await forget(30), await forget(7), await forget(1)]).toEqual([
      0, 2, 1, 0,
    ]);
    const { rows } = await service.database.query<{ count: number }>(
      'select count(*)::int as count from audit_log where request_id = $1',
      [request],
    );
    expect(rows).toEqual([{ count: 5 }]);
  });
});
