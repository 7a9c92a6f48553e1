import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createHash, randomUUID } from 'node:crypto';
import pg from 'pg';
import type { CustomerCardDetailJson } from '#loyalty/stamping/customer-card.dto.js';
import { customerCardReadModel } from '#loyalty/stamping/customer-card.entity.js';
import { readModels } from '../../apps/read-models.js';
import { createTestEnvironment } from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';
import { startProgram, type Program } from '../support/services/program.js';
import { startService, type Client, type Service } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { CUSTOMER_EVENTS, subscribe, useWebhooks } from '../support/services/webhook-dispatcher.js';

/** Runs `inkpad rebuild` as an operator does: beside a service that continues to work. */

const SLOW = 300_000;
/** The EventStoreDB emulator shares this process with the clients, and needs time to respond. */
const CLIENT_COUNT = process.env['TEST_ENGINE'] === 'eventstoredb' ? 2 : 6;

let service: Service;
let store: Client;
const { receive, startDispatcher } = useWebhooks(() => service);

beforeAll(async () => {
  service = await startService({ WEBHOOK_ALLOW_INSECURE_TARGETS: 'true' });
  store = await service.newStore();
}, SLOW);
afterAll(() => service.stop());

const query = async <R extends object>(text: string, values: unknown[] = []): Promise<R[]> =>
  (await service.database.query<R>(text, values)).rows;

function start(program: string, args: string[]): Program {
  const environment = createTestEnvironment(service.database.url, {
    ...service.environment,
  });
  return startProgram(`dist/apps/cli/${program}.js`, environment, args);
}

async function run(
  program: string,
  ...args: string[]
): Promise<{ code: number | null; output: string }> {
  const child = start(program, args);
  return { code: await child.exitCode, output: child.output() };
}

const tables = [...readModels.map(({ table }) => `public.${table}`), 'es.claims'];

const readHistory = () => query<Record<string, unknown>>('select * from history order by seq');

/** Waits until the dispatcher has added everything to the table of the history. */
async function waitForHistory(): Promise<Record<string, unknown>[]> {
  const events = await service.history();
  const history = await eventually(readHistory, (rows) => rows.length >= events.length);
  // They are counted from this table: what a test removes from it before is never counted.
  await eventually(
    () => query<{ seq: number }>('select seq from statistics_progress'),
    ([progress]) => progress !== undefined && progress.seq >= events.length - 1,
  );
  return history;
}

/** Expects every event once in the history table, numbered as in the log. */
async function expectHistory(): Promise<void> {
  const rows = await waitForHistory();
  const events = await service.history();
  expect(rows.map(({ seq, event_id: id }) => [seq, id])).toEqual(
    events.map(({ id }, i) => [i, id]),
  );
}

/** Reads everything that defines the tables. */
const readDefinitions = () =>
  query(
    `select c.oid::regclass::text as name, c.reloptions, c.relacl::text,
       pg_get_userbyid(c.relowner) as owner,
       (select json_agg(json_build_array(a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
          a.attgenerated, pg_get_expr(d.adbin, d.adrelid)) order by a.attnum)
        from pg_attribute a left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
        where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped) as columns,
       (select json_agg(pg_get_indexdef(i.indexrelid) order by pg_get_indexdef(i.indexrelid)) from pg_index i where i.indrelid = c.oid)
         as indexes,
       (select json_agg(json_build_array(conname, pg_get_constraintdef(oid)) order by conname)
        from pg_constraint where conrelid = c.oid) as constraints
     from pg_class c where c.oid = any ($1::regclass[])
     union all
     select oid::regclass::text, reloptions, relacl::text, pg_get_userbyid(relowner),
       to_json(pg_get_viewdef(oid)), null, null
     from pg_class where relkind = 'v' and relnamespace = 'public'::regnamespace
     order by name`,
    [[...tables, 'public.history']],
  );

const readRows = async () =>
  Promise.all(
    tables.map(async (table) => {
      const rows = await query<{ row: string }>(`select t::text as row from ${table} t order by 1`);
      return { table, rows: rows.map(({ row }) => row) };
    }),
  );

const readContents = async () =>
  (await readRows()).map(({ table, rows }) => ({
    table,
    n: rows.length,
    sum: createHash('sha256').update(rows.join('\n')).digest('hex'),
  }));

/** Stamps the cards until `until.over`. @returns how many stamps of each succeeded */
function stampAll(cards: string[], until: { over: boolean }): Promise<number[]> {
  return Promise.all(
    cards.map(async (path) => {
      let count = 0;
      while (!until.over) {
        const { status } = await store.stamp(path, { external_ref: randomUUID() });
        expect(status).toBe(200);
        count++;
      }
      return count;
    }),
  );
}

it(
  'inkpad rebuild replays everything while stamps, new customers and webhooks continue, and loses nothing',
  async () => {
    const receiver = await receive();
    await subscribe(store, receiver, { events: CUSTOMER_EVENTS });
    await startDispatcher();
    const enrolments = await Promise.all(
      Array.from({ length: CLIENT_COUNT }, () => enrol(store, { rewards: [3] })),
    );
    const cards = enrolments.map(({ path }) => path);
    const before = await readDefinitions();

    const until = { over: false };
    const work = [
      stampAll(cards, until),
      (async () => {
        for (let i = 0; !until.over; i++) {
          const card_id = enrolments[i % CLIENT_COUNT]?.card.id;
          const customer = { first_name: 'Bea', email: `bea${i}@example.com` };
          const { status } = await store.post(`${store.store}/customers`, { customer, card_id });
          expect(status).toBe(201);
        }
      })(),
      (async () => {
        while (!until.over) {
          expect((await store.get(`${store.store}/customers?search=anna`)).status).toBe(200);
          expect((await store.get(`${store.store}/cards`)).status).toBe(200);
        }
      })(),
    ] as const;
    try {
      for (let i = 0; i < 2; i++) {
        expect(await run('rebuild')).toEqual({
          code: 0,
          output: expect.stringContaining('no difference; nothing was changed'),
        });
        // Not those that are being stamped: a stamp may have loaded the row before it is repaired.
        await query(
          `update customer_cards set state = state || '{"other": 1}' where id <> all ($1)`,
          [enrolments.map(({ customerCard }) => customerCard.id)],
        );
        expect((await run('rebuild')).code).toBe(1);
      }
      expect(await run('rebuild', '--check')).toEqual({
        code: 0,
        output: expect.stringContaining('no difference; nothing was changed'),
      });
    } finally {
      until.over = true;
    }
    const [stampCounts] = await Promise.all(work);

    for (const [i, path] of cards.entries()) {
      const { body } = await store.get<CustomerCardDetailJson>(path);
      expect(body.stamps_count).toBe(stampCounts[i]);
    }
    expect(await readDefinitions()).toEqual(before);
    await expectHistory();
    expect(await run('verify')).toEqual({
      code: 0,
      output: expect.stringContaining('every read model matches'),
    });

    const publishedCount = (await service.history()).filter(
      ({ type, data }) =>
        ['StampsEarned', 'RewardUnlocked', 'CustomerCreated', 'CustomerCardIssued'].includes(
          type,
        ) && data !== undefined,
    ).length;
    await eventually(
      () => receiver.events.length,
      (count) => count >= publishedCount,
    );
    expect(receiver.events).toHaveLength(publishedCount);
    expect(receiver.received).toHaveLength(publishedCount);
  },
  SLOW,
);

describe('inkpad rebuild of read models and claims', () => {
  it(
    'reports every difference, changes nothing with --check, and corrects them without it',
    async () => {
      const ids = [];
      for (let i = 0; i < 5; i++) {
        const { path, customerCard } = await enrol(store, { rewards: [2] });
        await store.post(`${path}/stamp`, { stamps: 3, external_ref: randomUUID() });
        ids.push(customerCard.id);
      }
      const [changed, missing, another, other] = ids;
      expect(await run('rebuild', '--check')).toMatchObject({ code: 0 });
      const before = await readContents();

      await query(
        `update customer_cards set state = jsonb_set(state, '{stampsCount}', '99') where id = $1`,
        [changed],
      );
      await query('delete from customer_cards where id = $1', [missing]);
      await query('update customer_cards set account_id = account_id + 1 where id = $1', [another]);
      await query(`update customer_cards set balance = 99, code = 'x' where id = $1`, [other]);
      await query(
        `insert into locations (id, account_id, revision, hash, projection_version, state)
         values (999999999, $1, 0, sha256('nobody'), 1, '{}')`,
        [store.accountId],
      );
      const stream = (id: number | undefined) => `customer_card-${id}`;
      await query(`delete from es.claims where stream_id = $1 and kind = 'card_code'`, [
        stream(changed),
      ]);
      await query(
        `update es.claims set revision = 0 where stream_id = $1 and kind = 'stamp_receipt'`,
        [stream(missing)],
      );
      await query(`insert into es.claims values ($1, 'stamp_receipt', sha256('nobody'), $2, 1)`, [
        store.accountId,
        stream(another),
      ]);
      const tampered = await readContents();

      const differences = [
        `${stream(changed)}: the read model does not match its events (stampsCount)`,
        `${stream(missing)}: the read model is missing`,
        `${stream(another)}: the read model belongs to another account`,
        `${stream(other)}: the read model's columns do not match its state`,
        'location-999999999: the read model has no stream',
        `${stream(changed)}: its card_code is not claimed`,
        `${stream(missing)}: its stamp_receipt was claimed at another revision`,
        `${stream(another)}: it holds a stamp_receipt that its history does not contain`,
      ];
      for (const args of [['--check'], []]) {
        const { code, output } = await run('rebuild', ...args);
        for (const sentence of differences) expect(output).toContain(sentence);
        expect(output).toContain('8 differences; ');
        expect(code).toBe(1);
        expect(await readContents()).toEqual(args.length > 0 ? tampered : before);
      }
      expect(await run('rebuild', '--check')).toMatchObject({ code: 0 });
      expect(await run('verify')).toMatchObject({ code: 0 });
    },
    SLOW,
  );

  it(
    'rebuilds one table with --table',
    async () => {
      const { card, customerCard } = await enrol(store);
      await query(`update cards set state = jsonb_set(state, '{name}', '"Tea"') where id = $1`, [
        card.id,
      ]);
      await query('delete from es.claims where stream_id = $1', [
        `customer_card-${customerCard.id}`,
      ]);
      const versions = () => query('select version from account_versions order by account_id');
      const before = await versions();
      const cards = await run('rebuild', '--table', 'cards');
      expect(cards.output).toContain(
        `card-${card.id}: the read model does not match its events (name)`,
      );
      expect(cards.output).toContain('1 differences; ');
      // Makes every process drop its caches of the former read models.
      expect(await versions()).not.toEqual(before);
      const claims = await run('rebuild', '--table', 'claims');
      expect(claims.output).toContain(`customer_card-${customerCard.id}: its enrolment`);
      expect(claims.output).toContain('2 differences; ');
      expect(await run('rebuild', '--check')).toMatchObject({ code: 0 });
      expect(await run('rebuild', '--table', 'users')).toEqual({
        code: 2,
        output: expect.stringMatching(/^error: --table must be one of: accounts, .*\n$/),
      });
    },
    SLOW,
  );

  it(
    'counts read models of an older projection version as no difference, and projects them again',
    async () => {
      const { customerCard } = await enrol(store);
      await query(
        `update customer_cards set projection_version = 1, state = state - 'stampings' where id = $1`,
        [customerCard.id],
      );
      const { code, output } = await run('rebuild');
      expect(output).toContain('1 read models were of an older projection version');
      expect(code).toBe(0);
      expect(
        await query(
          `select projection_version, state ? 'stampings' as whole from customer_cards where id = $1`,
          [customerCard.id],
        ),
      ).toEqual([{ projection_version: customerCardReadModel.projectionVersion, whole: true }]);
    },
    SLOW,
  );
});

describe('inkpad rebuild of the history table', () => {
  it(
    'reports every difference, corrects them, and lets the dispatcher continue behind them',
    async () => {
      for (let i = 0; i < 2; i++) await enrol(store);
      const { path, customer, customerCard } = await enrol(store, { rewards: [2] });
      await startDispatcher();
      await store.post(`${path}/stamp`, { stamps: 3, note: 'for Anna' });
      await store.post(`${store.store}/customers/${customer.id}/erase`);
      const before = await waitForHistory();
      const stream = `customer_card-${customerCard.id}`;
      const [card, stamped] = before.filter((row) => row['stream'] === stream);
      const last = Number(before.at(-1)?.['seq']);

      await query('update history set balance = balance + 1 where seq = $1', [stamped?.['seq']]);
      await query('update history set event_id = gen_random_uuid() where seq = $1', [
        card?.['seq'],
      ]);
      await query('delete from history where seq in (1, 2, 4, $1)', [last]);
      const tampered = await readHistory();
      const differences = [
        `number ${stamped?.['seq']}: event 1 of ${stream} is not what the log says (balance)`,
        `number ${card?.['seq']}: is event 0 of ${stream}, and in the log event 0 of ${stream}`,
        'numbers 1 to 2: are missing',
        'number 4: event',
        `number ${last}: event`,
        'history: 5 differences',
      ];
      for (const args of [['--check'], []]) {
        const { code, output } = await run('rebuild', ...args);
        for (const sentence of differences) expect(output).toContain(sentence);
        expect(code).toBe(1);
        expect(await readHistory()).toEqual(args.length > 0 ? tampered : before);
      }
      expect(await run('rebuild', '--table', 'history', '--check')).toEqual({
        code: 0,
        output: expect.stringContaining(`history: ${before.length} rows, no difference`),
      });
      expect(JSON.stringify(before)).not.toContain('Anna');

      const otherHolder = await enrol(store);
      await store.stamp(otherHolder.path);
      await expectHistory();
      const { body: page } = await store.get<{ id: string }[]>(
        `${otherHolder.path}/events?limit=1`,
      );
      const proof = `${store.store}/history/${page[0]?.id}/proof`;
      expect((await store.get(proof)).status).toBe(200);
    },
    SLOW,
  );

  it(
    'fills an empty table, and a dispatcher fills it the same way',
    async () => {
      await startDispatcher();
      const before = await waitForHistory();
      await query('delete from history');
      expect((await run('rebuild', '--table', 'history')).output).toContain(
        `numbers 0 to ${before.length - 1}: are missing`,
      );
      expect(await readHistory()).toEqual(before);
      await query('delete from history');
      await query(`delete from es.positions where subscription = 'history'`);
      await enrol(store);
      await expectHistory();
    },
    SLOW,
  );

  it(
    'corrects every entry, and an end that is not in the log',
    async () => {
      const dispatcher = await startDispatcher();
      for (let i = 0; i < 2; i++) await enrol(store);
      const before = await waitForHistory();
      await dispatcher.kill('SIGTERM');
      const last = before.length - 1;
      await query('update history set balance = coalesce(balance, 0) + 1');
      await query('update history set seq = seq + 5 where seq = $1', [last]);
      const { code, output } = await run('rebuild', '--table', 'history');
      expect(code).toBe(1);
      expect(output).toContain(`${before.length + 1} differences; the tables were repaired`);
      expect(await readHistory()).toEqual(before);
      expect(await run('rebuild', '--table', 'history', '--check')).toMatchObject({ code: 0 });
      await startDispatcher();
      await enrol(store);
      await expectHistory();
    },
    SLOW,
  );

  it(
    'keeps the table as it is when the log is not the one that was signed',
    async () => {
      await startDispatcher();
      await enrol(store);
      // A full tile would not be at the edge of the tree.
      if ((await service.history()).length % 256 === 0) await enrol(store);
      const before = await waitForHistory();
      await eventually(
        () => query<{ size: number }>('select size from transparency_log'),
        ([log]) => log?.size === before.length,
      );
      const tile = `level = 0 and index = ${Math.floor(before.length / 256)}`;
      const [stored] = await query<{ hashes: Buffer }>(
        `select hashes from transparency_tiles where ${tile}`,
      );
      await query(`update transparency_tiles set hashes = overlay(hashes placing sha256('another')
                   from length(hashes) - 31) where ${tile}`);
      await query('update history set stamps = 9 where seq = 3');
      const tampered = await readHistory();
      const report = `history: 2 differences
  the table is kept: the first ${before.length} events of the log are not those of the tree`;
      const { code, output } = await run('rebuild');
      expect(output).toContain(report);
      expect(output).toContain('2 differences; nothing was changed');
      expect(code).toBe(1);
      expect((await run('rebuild', '--table', 'history')).output).toContain(
        '2 differences; nothing was changed',
      );
      expect(await readHistory()).toEqual(tampered);
      await query(`update transparency_tiles set hashes = $1 where ${tile}`, [stored?.hashes]);
      expect((await run('rebuild')).output).toContain('history: 1 differences');
      expect(await readHistory()).toEqual(before);
    },
    SLOW,
  );
});

describe('inkpad rebuild of the statistics', () => {
  it(
    'reports what verify reports, changes nothing with --check, and counts the store anew without it',
    async () => {
      await startDispatcher();
      const shop = await service.newStore();
      const { path } = await enrol(shop);
      await shop.stamp(path, 3);
      const readHours = () =>
        query<{ stamps: string }>(
          `select card_id, location_id, user_id, day, hour, visits, stamps, redemptions, joined, imported, first_of_day, first_of_week,
             first_of_month, first_of_all
           from statistics_hours where account_id = $1 order by card_id, location_id, user_id, day, hour`,
          [shop.accountId],
        );
      const before = await eventually(readHours, (rows) =>
        rows.some(({ stamps }) => Number(stamps) === 3),
      );
      await query('update statistics_hours set stamps = stamps + 1 where account_id = $1', [
        shop.accountId,
      ]);
      const tampered = await readHours();

      const difference = `statistics: account ${shop.accountId}: `;
      for (const [program, ...args] of [['verify'], ['rebuild', '--check']] as const) {
        const { code, output } = await run(program, ...args);
        expect([program, code, output]).toEqual([program, 1, expect.stringContaining(difference)]);
        expect(await readHours()).toEqual(tampered);
      }
      const { code, output } = await run('rebuild', '--table', 'statistics');
      expect([code, output]).toEqual([1, expect.stringContaining(difference)]);
      expect(await readHours()).toEqual(before);
      expect(await run('rebuild', '--table', 'statistics')).toEqual({
        code: 0,
        output: expect.stringContaining('no difference'),
      });
      expect(await run('verify')).toMatchObject({ code: 0 });
    },
    SLOW,
  );
});

describe('inkpad rebuild', () => {
  /** Gives every read model another state, and takes half of the claims away. */
  async function tamperAll(): Promise<void> {
    for (const { table } of readModels)
      await query(`update ${table} set state = state || '{"other": 1}'`);
    await query(`delete from es.claims where get_byte(value, 0) % 2 = 0
      and stream_id in (select 'customer-' || id from customers union all select 'card-' || id from cards)`);
  }

  it(
    'fills tables that are empty',
    async () => {
      const { path } = await enrol(store);
      await store.stamp(path, { external_ref: randomUUID() });
      const before = await readContents();
      for (const { table } of readModels) await query(`delete from ${table}`);
      const { code, output } = await run('rebuild');
      expect(output).toContain('the read model is missing');
      expect(output).toContain('the tables were repaired');
      expect(code).toBe(1);
      expect(await readContents()).toEqual(before);
      expect((await store.stamp(path)).status).toBe(200);
      expect(await run('rebuild', '--check')).toMatchObject({ code: 0 });
    },
    SLOW,
  );

  it(
    'leaves each row as it was or as it should be whenever it is killed, and can be run again',
    async () => {
      const before = await readRows();
      const right = new Map(before.map(({ table, rows }) => [table, new Set(rows)]));
      for (let i = 0; i < 3; i++) {
        await tamperAll();
        const tampered = await readRows();
        const program = start('rebuild', []);
        let hasEnded = false;
        void program.exitCode.then(() => (hasEnded = true));
        const countWrong = async () => {
          const [row] = await query<{ n: number }>(
            `select (${readModels
              .map(({ table }) => `(select count(*) from ${table} where state ? 'other')`)
              .join(' + ')})::int as n`,
          );
          return row?.n ?? 0;
        };
        const all = await countWrong();
        // On a fast machine it may have ended before the moment is seen.
        await eventually(countWrong, (n) => n < all || hasEnded);
        await program.kill('SIGKILL');
        for (const { table, rows } of await readRows()) {
          const former = new Set(tampered.find((candidate) => candidate.table === table)?.rows);
          for (const row of rows) expect(former.has(row) || right.get(table)?.has(row)).toBe(true);
        }
        await run('rebuild');
        expect(await readRows()).toEqual(before);
      }
      expect(await run('rebuild', '--check')).toMatchObject({ code: 0 });
    },
    SLOW,
  );

  it(
    'waits for no reader, and for a transaction that holds a record, without delaying stamps',
    async () => {
      const { path } = await enrol(store);
      const { path: otherPath, customerCard } = await enrol(store);
      const before = await readContents();
      const otherClient = new pg.Client(service.database.ownerUrl);
      await otherClient.connect();
      try {
        // The server ends one that is idle for half a minute, which a rebuild on a slow machine exceeds.
        await otherClient.query('set idle_in_transaction_session_timeout = 0');
        await otherClient.query('begin; select count(*) from customer_cards');
        await tamperAll();
        expect((await run('rebuild')).code).toBe(1);
        expect(await readContents()).toEqual(before);

        await tamperAll();
        await otherClient.query(
          `select from customer_cards where id = ${customerCard.id} for update`,
        );
        const [first, second] = [start('rebuild', []), start('rebuild', [])];
        await eventually(
          () =>
            query<{ n: number }>(
              `select count(*)::int as n from pg_stat_activity
               where wait_event_type = 'Lock' and query like '%customer_cards%for update'`,
            ),
          ([row]) => (row?.n ?? 0) > 0,
        );
        expect((await store.stamp(path)).status).toBe(200);
        await otherClient.query('rollback');
        for (const { exitCode } of [first, second]) expect(await exitCode).toBe(1);
        expect((await store.stamp(otherPath)).status).toBe(200);
        expect(await run('rebuild', '--check')).toMatchObject({ code: 0 });
      } finally {
        await otherClient.end();
      }
    },
    SLOW,
  );
});
