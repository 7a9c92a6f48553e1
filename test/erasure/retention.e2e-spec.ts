import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Pool } from 'pg';
import { LeaderLock } from '#platform/database/leader-lock.js';
import { MessageRetention } from '#outbound/campaigns/message-retention.service.js';
import { ImportRetention } from '#loyalty/imports/import-retention.service.js';
import { CARD_LINKS } from '../support/database/card-links.js';
import { testConfig } from '../support/database/database.js';
import { startService, type LocalService } from '../support/services/service.js';

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
      `insert into outgoing_messages (kind, give_up_at, account_id, customer_id, created_at, channel, state, reason, finished_at)
       select 'card_link', now(), 1, n, now(), 'email', 'sent', null, now() - interval '31 days'
       from generate_series(1, 1500) n
       union all
       select 'card_link', now(), 1, n, now(), 'email', 'failed', 'refused', now() - interval '29 days'
       from generate_series(1, 20000) n
       union all
       select 'card_link', now(), 1, 1, now() - interval '40 days', 'email', 'queued', 'mail_not_set_up', null`,
    );
    await service.database.query('analyze outgoing_messages');
    const config = configure({ MESSAGE_RETENTION_DAYS: '30' });
    const retention = new MessageRetention(pool, config);
    const { messageRetentionDays: days } = config;
    expect(days).toBe(30);
    expect([
      await retention.deleteFinished(30),
      await retention.deleteFinished(30),
      await retention.deleteFinished(30),
    ]).toEqual([1000, 500, 0]);
    const { rows } = await service.database.query<{ state: string; count: number }>(
      `select state, count(*)::int as count from ${CARD_LINKS} group by 1 order by 1`,
    );
    expect(rows).toEqual([
      { state: 'failed', count: 20_000 },
      { state: 'held', count: 1 },
    ]);
    const plan = await service.database.query<{ 'QUERY PLAN': string }>(
      `explain select id from outgoing_messages
       where rule_id is null and due_at is null and finished_at < now() - make_interval(days => 30)
       order by finished_at limit 1000 for update skip locked`,
    );
    expect(plan.rows.map((row) => row['QUERY PLAN']).join('\n')).toContain(
      'outgoing_messages_finished',
    );
  });

  it('deletes no messages without MESSAGE_RETENTION_DAYS', async () => {
    expect(configure({}).messageRetentionDays).toBeNull();
    // Returns at once, as there is nothing to do.
    const { signal } = new AbortController();
    await new MessageRetention(pool, configure({})).run(signal);
  });

  it('deletes finished messages of sent announcements after MESSAGE_RETENTION_DAYS, by an index', async () => {
    await service.database.query(
      `insert into campaigns (id, kind, account_id, state, title, text, channels, trigger, created_at, updated_at)
       select 900000 + n, 'announcement', 1, state, 't', 't', '{wallet}', '{}', now(), now()
       from unnest(array['sent', 'sending']) with ordinality as s (state, n);
       insert into outgoing_messages (kind, give_up_at, account_id, announcement_id, customer_id, state, channel, due_at,
         created_at, finished_at)
       select 'campaign', now(), 1, 900001, n, 'sent', 'wallet', null::timestamptz, now(), now() - interval '31 days'
       from generate_series(1, 1500) n
       union all
       select 'campaign', now(), 1, 900001, 10000 + n, 'sent', 'wallet', null, now(), now() - interval '29 days'
       from generate_series(1, 20000) n
       union all
       select 'campaign', now(), 1, 900002, 1, 'skipped', null, null, now(), now() - interval '31 days';
       insert into silent_messages select id from outgoing_messages where kind = 'campaign' and customer_id in (1, 10001);
       update outgoing_messages set due_at = now() where announcement_id = 900001 and customer_id = 2;
       analyze outgoing_messages`,
    );
    const retention = new MessageRetention(pool, configure({}));
    const deleted = async () => retention.deleteFinished(30);
    expect([await deleted(), await deleted(), await deleted()]).toEqual([1000, 499, 0]);
    const { rows } = await service.database.query<{ id: number; count: number; silent: number }>(
      `select announcement_id::int as id, count(*)::int as count, count(s)::int as silent
       from outgoing_messages m left join silent_messages s on s.message_id = m.id
       where announcement_id > 900000 group by 1 order by 1`,
    );
    expect(rows).toEqual([
      { id: 900_001, count: 20_001, silent: 1 },
      { id: 900_002, count: 1, silent: 1 },
    ]);
    const silent = await service.database.query('select from silent_messages');
    expect(silent.rowCount).toBe(2);
    const plan = await service.database.query<{ 'QUERY PLAN': string }>(
      `explain select id from outgoing_messages
       where rule_id is null and due_at is null and finished_at < now() - make_interval(days => 30)
       order by finished_at limit 1000`,
    );
    expect(plan.rows.map((row) => row['QUERY PLAN']).join('\n')).toContain(
      'outgoing_messages_finished',
    );
  });

  it('deletes messages of cancelled announcements, whose counts stay, once none of them is left to be sent', async () => {
    await service.database.query(
      `insert into campaigns (id, kind, account_id, state, title, text, channels, trigger, created_at, updated_at, finished_at)
       select 900010 + n, 'announcement', 1, 'cancelled', 't', 't', '{wallet}', '{}', now(), now(), now() - interval '31 days'
       from generate_series(1, 2) n;
       insert into outgoing_messages (kind, give_up_at, account_id, announcement_id, customer_id, state, channel, due_at,
         created_at, finished_at)
       select 'campaign', now(), 1, 900010 + n, case state when 'sent' then 1 else 2 end, state, 'wallet', null::timestamptz, now(), now() - interval '31 days'
       from generate_series(1, 2) n, unnest(array['sent', 'skipped']) state where state = 'sent' or n = 1
       union all
       select 'campaign', now(), 1, 900012, 3, 'queued', 'wallet', now(), now(), null`,
    );
    await new MessageRetention(pool, configure({})).deleteFinished(30);
    const { rows } = await service.database.query<{ id: number; counts: object; left: number }>(
      `select id::int, counts, (select count(*)::int from outgoing_messages m where m.announcement_id = a.id) as left
       from campaigns a where id in (900011, 900012) order by id`,
    );
    const sentBy = { wallet: 1, web_push: 0, email: 0, sms: 0 };
    expect(rows).toEqual([
      { id: 900_011, counts: { queued: 0, sent: 1, failed: 0, skipped: 1, sentBy }, left: 0 },
      { id: 900_012, counts: null, left: 2 },
    ]);
  });

  it('deletes messages of a rule once their occasion cannot come again', async () => {
    await service.database.query(
      `insert into campaigns (id, kind, account_id, state, title, text, channels, trigger, created_at, updated_at,
         finished_at, checked_until, due_at)
       select 900000 + n, 'rule', 1,
         case when deleted is not null then 'deleted' when next is null then 'disabled' else 'enabled' end, 't', 't',
         '{wallet}', jsonb_build_object('kind', kind), now(), now(), deleted, now() - lag * interval '1 day', next
       from (values (1, 'stamps_away', 0, null::timestamptz, now()), (2, 'birthday', 0, null, now()),
         (3, 'reward_unused', 0, null, now()), (4, 'inactive', 0, null, now()), (5, 'inactive', 0, now(), null),
         (6, 'stamps_away', 50, null, now()), (7, 'stamps_away', 50, null, null)) as r (n, kind, lag, deleted, next);
       insert into outgoing_messages (kind, give_up_at, account_id, rule_id, occasion, customer_id, state, due_at, created_at,
         finished_at)
       select 'campaign', now(), 1, 900000 + rule, days::text, 1, 'sent', case when days = 900 then now() end,
         now() - days * interval '1 day', now() - days * interval '1 day'
       from generate_series(1, 7) rule, unnest(array[6, 8, 29, 31, 364, 366, 368, 729, 731, 900]) days`,
    );
    const retention = new MessageRetention(pool, configure({}));
    const listRemaining = async () => {
      const { rows } = await service.database.query<{ days: string }>(
        `select string_agg(occasion, ' ' order by occasion::int) as days from outgoing_messages
         where rule_id > 900000 group by rule_id order by rule_id`,
      );
      return rows.map(({ days }) => days);
    };
    expect(await retention.deleteOfRules(7)).toBe(6 + 3 + 4 + 1 + 8 + 5 + 6);
    expect(await retention.deleteOfRules(7)).toBe(0);
    const remaining = [
      '6 8 29 900',
      '6 8 29 31 364 366 900',
      '6 8 29 31 364 900',
      '6 8 29 31 364 366 368 729 900',
      '6 900',
      '6 8 29 31 900',
      '6 8 29 900',
    ];
    expect(await listRemaining()).toEqual(remaining);
    expect(await retention.deleteOfRules(3650)).toBe(0);
  });

  it('deletes the rows of an import IMPORT_RETENTION_DAYS after its end, and of none that goes on', async () => {
    await service.database.query(
      `insert into imports (id, uuid, account_id, state, dry_run, format, encoding, columns, rows_total, actor, created_at,
         started_at, finished_at, updated_at, due_at)
       select 900000 + n, gen_random_uuid(), 1, state, false, 'csv', 'utf-8', '[]', 1, '{}', now() - interval '99 days',
         now() - interval '98 days', now() - finished * interval '1 day', now(), due
       from (values (1, 'done', 8, null), (2, 'done', 6, null), (3, 'running', null, now()), (4, 'checking', null, now()),
         (5, 'undoing', 8, now()), (6, 'ready', null, null), (7, 'failed', 9, null), (8, 'undone', 6, null)) x (n, state, finished, due)`,
    );
    const lock = service.app.get(LeaderLock, { strict: false });
    const retention = new ImportRetention(pool, lock, configure({ IMPORT_RETENTION_DAYS: '7' }));
    while (await retention.deleteOldest());
    const { rows } = await service.database.query<{ state: string; id: number; due: boolean }>(
      `select id - 900000 as id, state, due_at is not null as due from imports
       where id > 900000 and rows_deleted_at is null order by id`,
    );
    expect(rows).toEqual([
      { id: 2, state: 'done', due: false },
      { id: 3, state: 'running', due: true },
      { id: 4, state: 'checking', due: true },
      { id: 5, state: 'undoing', due: true },
      { id: 8, state: 'undone', due: false },
    ]);
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
