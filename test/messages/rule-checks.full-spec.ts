import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Pool } from 'pg';
import { Registry } from 'prom-client';
import { Audiences } from '#outbound/campaigns/audiences.service.js';
import { CampaignAddressing } from '#outbound/campaigns/campaign-addressing.service.js';
import { CampaignQueue } from '#outbound/campaigns/campaign-queue.service.js';
import { MessageRecipients } from '#outbound/campaigns/message-recipients.service.js';
import { MessageSettingsService } from '#outbound/campaigns/message-settings.service.js';
import { RuleChecks } from '#outbound/campaigns/rule-checks.service.js';
import { StoreRegions } from '#loyalty/customers/store-regions.service.js';
import { JobRunner } from '#platform/database/job-runner.js';
import { ProcessSession } from '#platform/database/process-session.js';
import { ProcessLink } from '#platform/database/process-link.js';
import { Maintenance } from '#platform/database/maintenance.service.js';
import type { TemplatesService } from '#loyalty/stamping/templates.service.js';
import { createTestDatabase, testConfig, type TestDatabase } from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';

const SLOW = 300_000;
const PEOPLE = 2_500;
const STORE = 1;
const MAX_OCCASIONS = 1_000;

let database: TestDatabase;
let pool: Pool;

/** A store that comes from another instance: everything in its history was recorded at the same time. */
beforeAll(async () => {
  database = await createTestDatabase();
  await database.query(
    `insert into accounts (id, account_id, revision, hash, projection_version, state)
     values ($1, $1, 0, '', 1, '{"name": "Shop", "timeZone": "UTC", "locale": "de"}')`,
    [STORE],
  );
  await database.query(
    `insert into customers (id, account_id, revision, hash, projection_version, state)
     select n, $2, 0, '', 1, jsonb_build_object('firstName', 'Anna', 'birthday', to_char(now(), '"1990"-MM-DD'),
       'marketingConsent', true, 'smsConsent', false, 'email', n || '@mail.example', 'phone', null,
       'createdAt', '2020-01-01T00:00:00.000Z', 'updatedAt', '2020-01-01T00:00:00.000Z', 'searchText', 'anna')
     from generate_series(1, $1) n`,
    [PEOPLE, STORE],
  );
  await database.query(
    `insert into customer_cards
     select n, $2, 0, '', 1, state, d.*
     from generate_series(1, $1) n,
       jsonb_build_object('customerId', n, 'cardId', 1, 'code', n::text, 'uuid', gen_random_uuid(), 'stampsCount', 8,
         'updatedAt', '2026-01-01T00:00:00.000Z') state, es.derive_customer_cards(state) d`,
    [PEOPLE, STORE],
  );
  await database.query(
    `insert into cards (id, account_id, revision, hash, projection_version, state)
     values (1, $1, 0, '', 1, '{"name": "Coffee", "stampsRequired": 9}')`,
    [STORE],
  );
  await database.query(
    `insert into history
     select n - 1, gen_random_uuid(), 'customer_card-' || n, 0, lpad(n::text, 20, '0'), $2::int, 'stamp.earned',
       at, at, at, 'api', 'token:1', n, n, 1, null, null, 1, 8, null
     from generate_series(1, $1) n, (select date_trunc('ms', now() - interval '30 hours') as at) t`,
    [PEOPLE, STORE],
  );
  await database.query('analyze');
  // A check that needed a second connection for its transaction would wait for itself.
  pool = new Pool({ connectionString: database.url, max: 1 });
}, SLOW);
afterAll(async () => {
  await pool.end();
  await database.close();
});

function startChecks() {
  const config = testConfig(database.url, {
    SMTP_URL: 'smtp://127.0.0.1:1',
    MAIL_FROM: 'a@b.example',
  });
  const link = new ProcessLink(config, 'test');
  const audiences = new Audiences(pool, {} as unknown as TemplatesService, config);
  const queue = new CampaignQueue(pool, new ProcessSession(pool, link));
  const settings = new MessageSettingsService(pool);
  const addressing = new CampaignAddressing(
    queue,
    audiences,
    new MessageRecipients(pool),
    new RuleChecks(pool, queue, audiences, settings, new StoreRegions(pool)),
    new Maintenance(pool, link, new Registry()),
  );
  const runner = new JobRunner(new Logger('test'));
  runner.start(addressing.createHandler('rule'));
  return {
    // Nothing announces what becomes due, as it does in a process.
    wake: () => runner.wake(),
    stop: async () => {
      await runner.stop(SLOW);
      await link.onApplicationShutdown();
    },
  };
}

it.each<[kind: string, threshold: number | null]>([
  ['inactive', 1],
  ['birthday', null],
  ['stamps_away', 1],
])(
  'a rule about %s reaches everybody of an imported store once, no more than a check may have at a time',
  async (kind, threshold) => {
    await database.query('delete from outgoing_messages');
    const [rule] = (
      await database.query<{ id: number }>(
        `insert into campaigns (id, kind, account_id, state, title, text, channels, trigger, created_at,
           updated_at, checked_seq, checked_until, due_at)
         values (nextval('campaigns_id'), 'rule', $1, 'enabled', 'Hello', 'Come by', '{email}', $2, now(), now(), -1,
           date_trunc('day', now()) - interval '1 day', now()) returning id`,
        [STORE, JSON.stringify({ kind, threshold, cardId: null })],
      )
    ).rows;
    const checks = startChecks();
    const find = async () => {
      checks.wake();
      return (
        await database.query<{
          customers: number;
          messages: number;
          largest: number;
          checked_seq: number;
        }>(
          `select count(distinct customer_id)::int as customers, count(*)::int as messages,
             (select max(n)::int from (select count(*) as n from outgoing_messages group by created_at) t) as largest,
             (select checked_seq from campaigns where id = $1) as checked_seq
           from outgoing_messages where rule_id = $1`,
          [rule?.id],
        )
      ).rows[0];
    };
    try {
      const result = await eventually(find, (check) => (check?.customers ?? 0) >= PEOPLE);
      expect(result).toMatchObject({ customers: PEOPLE, messages: PEOPLE, largest: MAX_OCCASIONS });
      expect(result?.checked_seq).toBe(kind === 'stamps_away' ? PEOPLE - 1 : -1);
    } finally {
      await checks.stop();
      await database.query(`update campaigns set state = 'disabled', due_at = null`);
    }
  },
  SLOW,
);

it(
  'a rule whose check runs into the time limit of statements delays no other',
  async () => {
    const insertRule = async (dueSince: string) =>
      (
        await database.query<{ id: number }>(
          `insert into campaigns (id, kind, account_id, state, title, text, channels, trigger, created_at,
             updated_at, checked_seq, checked_until, due_at)
           values (nextval('campaigns_id'), 'rule', $1, 'enabled', 'Hello', 'Come by', '{email}',
             '{"kind": "birthday", "threshold": null, "cardId": null}', now(), now(), -1,
             date_trunc('day', now()) - interval '1 hour', now() - $2::interval) returning id`,
          [STORE, dueSince],
        )
      ).rows[0]?.id;
    const [slow, next] = [await insertRule('2 hours'), await insertRule('1 hour')];
    await database.query(`
      create function run_into_limit() returns trigger language plpgsql as $$
      begin
        if new.id = ${slow} and new.checked_until <> old.checked_until then
          raise exception 'canceling statement due to statement timeout' using errcode = '57014';
        end if;
        return new;
      end $$;
      create trigger run_into_limit before update on campaigns
      for each row execute function run_into_limit()`);
    const checks = startChecks();
    const isChecked = async (id: number | undefined) =>
      (
        await database.query<{ checked: boolean }>(
          `select checked_until > now() - interval '10 minutes' as checked from campaigns where id = $1`,
          [id],
        )
      ).rows[0]?.checked;
    try {
      await eventually(
        () => isChecked(next),
        (checked) => checked === true,
      );
      expect(await isChecked(slow)).toBe(false);
    } finally {
      await checks.stop();
      await database.query('drop trigger run_into_limit on campaigns');
    }
  },
  SLOW,
);
