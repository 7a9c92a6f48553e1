import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Pool } from 'pg';
import type { Config } from '#configuration/config.js';
import { Audiences } from '#outbound/campaigns/audiences.service.js';
import { CHANNELS } from '#outbound/messages/message-channel.js';
import type { MessageRule, RuleKind } from '#outbound/campaigns/campaign.js';
import { MessageRecipients } from '#outbound/campaigns/message-recipients.service.js';
import { RuleReaches } from '#outbound/campaigns/rule-reaches.service.js';
import { StoreRegions } from '#loyalty/customers/store-regions.service.js';
import type { TemplatesService } from '#loyalty/stamping/templates.service.js';
import { createTestDatabase, type TestDatabase } from '../support/database/database.js';
import { RecordedStatements } from '../support/database/recorded-statements.js';

const SLOW = 300_000;
const PEOPLE = 100_000;
const STORE = 1;
const CARD = 1;
let database: TestDatabase;
let pool: Pool;
let statements: RecordedStatements;
let audiences: Audiences;

/** A store with 100,000 holders of one card, who were there once in the last 100 days, beside another store. */
beforeAll(async () => {
  database = await createTestDatabase();
  await database.query(
    `insert into accounts (id, account_id, revision, hash, projection_version, state)
     select n, n, 0, '', 1, jsonb_build_object('name', 'Shop', 'timeZone', 'Europe/Berlin', 'locale', 'de')
     from generate_series(1, 2) n`,
  );
  await database.query(
    `insert into cards (id, account_id, revision, hash, projection_version, state)
     values ($1, $2, 0, '', 1, '{"name": "Coffee", "stampsRequired": 10}')`,
    [CARD, STORE],
  );
  await database.query(
    `insert into customers (id, account_id, revision, hash, projection_version, state)
     select n, $2, 0, '', 1, jsonb_build_object('firstName', 'Anna', 'email', n || '@mail.example', 'phone', null,
       'birthday', to_char(date '1980-01-01' + n % 366, 'YYYY-MM-DD'), 'marketingConsent', n % 2 = 0, 'smsConsent', false,
       'createdAt', '2020-01-01T00:00:00.000Z', 'updatedAt', '2020-01-01T00:00:00.000Z', 'searchText', 'anna')
     from generate_series(1, $1) n`,
    [PEOPLE, STORE],
  );
  await database.query(
    `insert into customer_cards
     select n, $2, 0, '', 1, state, d.*
     from generate_series(1, $1) n,
       jsonb_build_object('customerId', n, 'cardId', $3::int, 'code', n::text, 'uuid', gen_random_uuid(),
         'stampsCount', n % 12, 'updatedAt', '2026-01-01T00:00:00.000Z') state, es.derive_customer_cards(state) d`,
    [PEOPLE, STORE, CARD],
  );
  await database.query(
    `insert into pass_installations (customer_card_id, platform, account_id, installed_at)
     select n, 'apple', $2, now() from generate_series(1, $1, 3) n`,
    [PEOPLE, STORE],
  );
  await database.query(
    `insert into history
     select n, gen_random_uuid(), 'customer_card-' || n, 0, lpad(n::text, 20, '0'),
       case when n % 10 = 0 then 2 else $2::int end,
       (array['stamp.earned', 'reward.unlocked', 'reward.redeemed'])[1 + n % 3],
       at, at, at, 'api', 'token:1', n, n, $3::int, null, case when n % 3 > 0 then 1 end, 1, 8 + n % 4, null
     from generate_series(0, $1 - 1) n,
       lateral (select now() - interval '100 days' + n * interval '100 days' / $1) t (at)`,
    [PEOPLE, STORE, CARD],
  );
  await database.query('analyze');
  pool = new Pool({ connectionString: database.url });
  statements = new RecordedStatements(pool);
  const templates = { get: () => Promise.resolve() } as unknown as TemplatesService;
  const config = { mail: null, sms: null, hasWallet: true } as unknown as Config;
  audiences = new Audiences(pool, templates, config);
}, SLOW);
afterAll(async () => {
  await pool.end();
  await database.close();
});

const EVERYBODY = { cardId: null, minStamps: null, birthdayMonth: null, inactiveSince: null };

async function measure<R>(work: () => Promise<R>): Promise<{ result: R; ms: number }> {
  statements.clear();
  const startedAt = performance.now();
  const result = await work();
  return { result, ms: Math.round(performance.now() - startedAt) };
}

describe('with 100,000 holders of a card', () => {
  it('a preview reads each table once', async () => {
    const { result, ms } = await measure(() => audiences.preview(STORE, EVERYBODY, CHANNELS));
    console.log(`preview: ${ms} ms`);
    expect(result.people).toBe(PEOPLE);
    expect(result.byChannel.wallet).toBe(Math.ceil(PEOPLE / 3));
    const [plan = ''] = await statements.explain(database, /group by/);
    expect(plan).not.toMatch(/loops=[1-9]\d{3,}/);
  });

  it('the next customers of an audience are found without reading those before', async () => {
    const { result, ms } = await measure(() => audiences.findNext(STORE, EVERYBODY, 90_000, 500));
    console.log(`next customers: ${ms} ms`);
    expect(result.map(({ customerId }) => customerId).at(-1)).toBe(90_500);
    const [plan = ''] = await statements.explain(database, /order by c.id limit/);
    expect(plan).toMatch(/Index .*customers/);
  });

  it.each<[RuleKind, number | null]>([
    ['stamps_away', 1],
    ['reward_unused', 14],
    ['inactive', 60],
    ['birthday', null],
  ])('the reach of a rule about %s reads its entries by an index', async (kind, threshold) => {
    const rule = {
      id: 1,
      accountId: STORE,
      trigger: { kind, threshold, cardId: null },
      channels: [...CHANNELS],
    } as unknown as MessageRule;
    const reaches = new RuleReaches(pool, audiences, new StoreRegions(pool));
    const { result, ms } = await measure(() => reaches.count(rule, 30));
    const list = await measure(() => reaches.list(rule, 30, { after: null, limit: 101 }));
    console.log(`${kind}: ${result.people} people, count ${ms} ms, list ${list.ms} ms`);
    expect(result.people).toBeGreaterThan(1_000);
    expect(result.byDay.length).toBeGreaterThanOrEqual(30);
    expect(list.result).toHaveLength(101);
    await reaches.count(rule, 30);
    const [plan = ''] = await statements.explain(database, /limit \$8/);
    expect(plan).not.toMatch(/Seq Scan on history/);
  });

  it.each([null, 'sent'] as const)(
    'the messages of a rule are listed without reading the newer ones of others (state: %s)',
    async (state) => {
      const insert = (rule: number, first: number, count: number) =>
        database.query(
          `insert into outgoing_messages (kind, give_up_at, account_id, rule_id, occasion, customer_id, state, channel)
           select 'campaign', now(), $1, $2, n::text, n, 'sent', 'email' from generate_series($3::int, $4) n`,
          [STORE, rule, first, first + count - 1],
        );
      await database.query('delete from outgoing_messages');
      await insert(1, 1, PEOPLE / 2);
      await insert(2, 1, PEOPLE / 2);
      await database.query('analyze outgoing_messages');
      const recipients = new MessageRecipients(pool);
      const list = () => recipients.list('rule', 1, state, { after: null, limit: 50 });
      const { result } = await measure(list);
      expect(result.map(({ ruleId, customerId }) => [ruleId, customerId]).slice(0, 2)).toEqual([
        [1, PEOPLE / 2],
        [1, PEOPLE / 2 - 1],
      ]);
      const [plan = ''] = await statements.explain(database, /from outgoing_messages m/);
      expect(plan).toMatch(/Index Scan Backward using outgoing_messages_rule/);
      expect(plan).not.toContain('Rows Removed by Filter');
    },
  );

  it('messages whose pass is not accepted are counted from the passes that fail', async () => {
    await database.query('delete from outgoing_messages');
    await database.query(
      `insert into outgoing_messages (kind, give_up_at, account_id, announcement_id, customer_id, customer_card_id, state,
         channel, finished_at)
       select 'campaign', now(), $1, a, n, n, 'sent', 'wallet', now()
       from generate_series(1, 10) a, generate_series(1, $2, 30) n`,
      [STORE, PEOPLE],
    );
    await database.query('analyze outgoing_messages');
    const announcements = Array.from({ length: 10 }, (_, i) => i + 1);
    const recipients = new MessageRecipients(pool);
    const count = () => recipients.countPending('announcement', STORE, announcements);
    const healthy = await measure(count);
    const [plan = ''] = await statements.explain(database, /from pass_installations/);
    expect(plan).toContain('pass_installations_failing');
    expect(plan).not.toMatch(/loops=[1-9]\d{3,}/);
    await database.query(`update pass_installations set last_error = 'Apple: 503'`);
    await database.query('analyze pass_installations');
    const outage = await measure(count);
    console.log(`pending: ${healthy.ms} ms, in an outage ${outage.ms} ms`);
    expect(healthy.result.size).toBe(0);
    expect(outage.result.get(1)).toEqual({ wallet: Math.ceil(PEOPLE / 30) });
    expect(outage.result.size).toBe(10);
  });
});
