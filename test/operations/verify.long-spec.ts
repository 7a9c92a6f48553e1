import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { createTestEnvironment } from '../support/database/database.js';
import { startProgram } from '../support/services/program.js';
import { startService, type Client, type Service } from '../support/services/service.js';
import { eventually } from '../support/jest/eventually.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { useWebhooks } from '../support/services/webhook-dispatcher.js';

/** Runs `inkpad verify` as an operator does: beside a service that continues to work. */

const SLOW = 300_000;
const ON_POSTGRES = process.env['TEST_ENGINE'] !== 'eventstoredb';

let service: Service;
let store: Client;
let card: { path: string; id: number; stream: string };

beforeAll(async () => {
  service = await startService();
  store = await service.newStore();
  const { path, customerCard } = await enrol(store);
  card = { path, id: customerCard.id, stream: `customer_card-${customerCard.id}` };
  await stamp(1);
}, SLOW);
afterAll(() => service.stop());

const stamp = (stamps: number) =>
  store.post(`${card.path}/stamp`, { stamps, external_ref: randomUUID() });

const query = (text: string, values: unknown[] = []) => service.database.query(text, values);

async function verify(...args: string[]): Promise<{ code: number | null; output: string }> {
  const environment = createTestEnvironment(service.database.url, service.environment);
  const program = startProgram('dist/apps/cli/verify.js', environment, args);
  return { code: await program.exitCode, output: program.output() };
}

const expectFinding = (sentence: string): unknown => ({
  code: 1,
  output: expect.stringContaining(sentence),
});

it(
  'inkpad verify finds no difference while clients stamp the same card and customers are created',
  async () => {
    let isVerifying = true;
    const stamps = Array.from({ length: 4 }, async () => {
      while (isVerifying) expect((await stamp(1)).status).toBe(200);
    });
    const newCustomers = (async () => {
      while (isVerifying) await enrol(store);
    })();
    for (let i = 0; i < 3; i++) {
      expect(await verify()).toEqual({
        code: 0,
        output: expect.stringContaining('every read model matches'),
      });
    }
    isVerifying = false;
    await Promise.all([...stamps, newCustomers]);
  },
  SLOW,
);

describe('inkpad verify', () => {
  let undo: (() => Promise<unknown>)[] = [];

  afterEach(async () => {
    for (const step of undo.reverse()) await step();
    undo = [];
    const { code, output } = await verify();
    if (code !== 0) throw new Error(`the next test would find this too: ${output}`);
  }, SLOW);

  /** Copies rows of a table, which are restored after the test. */
  async function keep(table: string, where: string): Promise<void> {
    const columns = await listColumns(table);
    const name = `kept_${randomUUID().replaceAll('-', '')}`;
    await query(`create table ${name} as select ${columns} from ${table} where ${where}`);
    undo.push(() =>
      runUnprotected(
        `delete from ${table} where ${where}`,
        `insert into ${table} (${columns}) select * from ${name}`,
        `drop table ${name}`,
      ),
    );
  }

  /** Lists the columns of a table that are not generated. */
  async function listColumns(table: string): Promise<string> {
    const { rows } = await query(
      `select string_agg(quote_ident(attname), ', ') as list from pg_attribute
       where attrelid = $1::regclass and attnum > 0 and not attisdropped and attgenerated = ''`,
      [table],
    );
    return (rows[0] as { list: string }).list;
  }

  /** Changes events as an owner of the tables with bad intentions could: without the trigger that protects them. */
  async function runUnprotected(...statements: string[]): Promise<void> {
    await query('alter table es.events disable trigger events_are_final');
    await query(statements.join('; ')).finally(() =>
      query('alter table es.events enable always trigger events_are_final'),
    );
  }

  const getCardCondition = () => `id = ${card.id}`;
  const getStreamCondition = () => `stream_id = '${card.stream}'`;

  it(
    'finds a read model that does not match its events, and --repair corrects it',
    async () => {
      await query(
        `update customer_cards set state = jsonb_set(state, '{stamps}', '99') where ${getCardCondition()}`,
      );
      expect(await verify()).toEqual(expectFinding('the read model does not match its events'));
      const repaired = await verify('--repair');
      expect(repaired.output).toContain('1 read models were repaired');
    },
    SLOW,
  );

  it.each([
    `balance = 99, code = 'x'`,
    'uuid = null',
    'merged_into = 1',
    `redeemed_reward_ids = redeemed_reward_ids || '[1]'`,
  ])(
    'finds columns that do not match the state (%s), and --repair corrects them',
    async (assignments) => {
      const readCard = () => query(`select * from customer_cards where ${getCardCondition()}`);
      const { rows: before } = await readCard();
      await query(`update customer_cards set ${assignments} where ${getCardCondition()}`);
      expect(await verify()).toEqual(
        expectFinding(`${card.stream}: the read model's columns do not match its state`),
      );
      expect((await verify('--repair')).output).toContain('1 read models were repaired');
      expect((await readCard()).rows).toEqual(before);
    },
    SLOW,
  );

  it(
    'finds a read model with another hash than that of its last event',
    async () => {
      await keep('customer_cards', getCardCondition());
      await query(`update customer_cards set hash = sha256('other') where ${getCardCondition()}`);
      expect(await verify()).toEqual(
        expectFinding('the read model does not have the hash of its last event'),
      );
    },
    SLOW,
  );

  it(
    'finds a stream without a read model, and --repair creates it',
    async () => {
      await query(`delete from customer_cards where ${getCardCondition()}`);
      const result = await verify();
      expect(result).toEqual(expectFinding(`${card.stream}: the read model is missing`));
      expect(result.output.split(`${card.stream}: the read model is missing`)).toHaveLength(2);
      expect((await verify('--repair')).output).toContain('1 read models were repaired');
    },
    SLOW,
  );

  it(
    'finds a read model without a stream',
    async () => {
      const columns = await listColumns('customer_cards');
      const values = columns.replace(/\bid\b/, '999999999');
      await query(
        `insert into customer_cards (${columns}) select ${values} from customer_cards where ${getCardCondition()}`,
      );
      undo.push(() => query('delete from customer_cards where id = 999999999'));
      expect(await verify()).toEqual(
        expectFinding('customer_card-999999999: the read model has no stream'),
      );
    },
    SLOW,
  );

  it(
    'finds claims that the history does not contain',
    async () => {
      await query(
        `insert into es.claims values ($1, 'stamp_receipt', sha256('nobody'), $2, 1),
           ($1, 'stamp_receipt', sha256('no record'), 'customer_card-888888888', 0)`,
        [store.accountId, card.stream],
      );
      undo.push(() =>
        query(`delete from es.claims where value in (sha256('nobody'), sha256('no record'))`),
      );
      const result = await verify();
      expect(result).toEqual(
        expectFinding(`${card.stream}: it holds a stamp_receipt that its history does not contain`),
      );
      expect(result).toEqual(
        expectFinding('customer_card-888888888: claims of a record that does not exist'),
      );
    },
    SLOW,
  );

  it(
    'finds a claim of the history that is missing',
    async () => {
      await keep('es.claims', `${getStreamCondition()} and kind = 'card_code'`);
      await query(`delete from es.claims where ${getStreamCondition()} and kind = 'card_code'`);
      expect(await verify()).toEqual(expectFinding(`${card.stream}: its card_code is not claimed`));
    },
    SLOW,
  );

  it(
    'counts a read model of an older projection version as no difference',
    async () => {
      await keep('customer_cards', getCardCondition());
      await query(`update customer_cards set projection_version = 0 where ${getCardCondition()}`);
      const { code, output } = await verify();
      expect(output).toContain('1 read models are of an older projection version');
      expect(code).toBe(0);
    },
    SLOW,
  );

  it(
    'finds a read model that belongs to another store',
    async () => {
      await keep('customer_cards', getCardCondition());
      await query(
        `update customer_cards set account_id = account_id + 1 where ${getCardCondition()}`,
      );
      expect(await verify()).toEqual(
        expectFinding(`${card.stream}: the read model belongs to another account`),
      );
    },
    SLOW,
  );

  describe('in the history table', () => {
    const { startDispatcher } = useWebhooks(() => service);

    // More events than are compared at a time.
    beforeAll(async () => {
      const addStamps = async () => {
        for (let i = 0; i < 330; i++) expect((await stamp(1)).status).toBe(200);
      };
      await Promise.all(Array.from({ length: 16 }, addStamps));
    }, SLOW);

    /** Waits until the history table has every event. @returns the numbers of the card's events */
    async function findNumbers(): Promise<number[]> {
      await startDispatcher();
      const events = await service.history();
      const { rows } = await eventually(
        () => query('select seq, stream from history order by seq'),
        (result) => result.rows.length >= events.length,
      );
      return (rows as { seq: number; stream: string }[])
        .filter(({ stream }) => stream === card.stream)
        .map(({ seq }) => seq);
    }

    it(
      'finds missing rows, also at the end, and a row that is in no log',
      async () => {
        const [first = -1] = await findNumbers();
        const last = (await service.history()).length - 1;
        // At the end, because the dispatcher counts the row below for the statistics.
        undo.push(() => verify('--repair'));
        await keep('history', `seq in (${first}, ${last})`);
        await query(`insert into history select (jsonb_populate_record(h, jsonb_build_object(
          'seq', ${last + 1}, 'event_id', gen_random_uuid(), 'revision', 999999))).*
          from history h where seq = ${first}`);
        undo.push(() => query(`delete from history where seq = ${last + 1}`));
        await query(`delete from history where seq in (${first}, ${last})`);
        const result = await verify();
        expect(result).toEqual(
          expectFinding(`history: number ${first}: event 0 of ${card.stream} is missing`),
        );
        expect(result).toEqual(expectFinding(`history: number ${last}: event`));
        expect(result).toEqual(
          expectFinding(
            `history: number ${last + 1}: event 999999 of ${card.stream} is not in the log`,
          ),
        );
      },
      SLOW,
    );

    it(
      'finds a row of another event, and rows with another revision, time or position',
      async () => {
        const [first = -1, second = -1] = await findNumbers();
        await keep('history', `seq in (0, ${first}, ${second})`);
        await query(`update history set event_id = gen_random_uuid() where seq = ${first}`);
        await query(`update history set recorded_at = recorded_at - interval '1 second',
                     revision = 77777 where seq = ${second}`);
        await query(`update history set position = replace(position, '0', '1') where seq = 0`);
        const result = await verify();
        for (const sentence of [
          `number ${first}: is event 0 of ${card.stream}, and in the log event 0 of ${card.stream}`,
          `number ${second}: event 1 of ${card.stream} is not what the log says (revision, recorded_at)`,
          'number 0: event 0 of account-',
          'is not what the log says (position)',
        ]) {
          expect(result).toEqual(expectFinding(sentence));
        }
        expect(result.output).toContain('3 differences');
      },
      SLOW,
    );
  });

  // In EventStoreDB only its own administrator can change events.
  if (ON_POSTGRES) {
    it(
      'finds an event that does not match its hash',
      async () => {
        await keep('es.events', `${getStreamCondition()} and revision = 1`);
        await runUnprotected(
          `update es.events set data = jsonb_set(data, '{stamps}', '5') where ${getStreamCondition()} and revision = 1`,
        );
        expect(await verify()).toEqual(
          expectFinding(`${card.stream}: event 1 breaks the hash chain`),
        );
      },
      SLOW,
    );

    it(
      'finds a missing event',
      async () => {
        await keep('es.events', `${getStreamCondition()} and revision = 1`);
        await runUnprotected(
          `delete from es.events where ${getStreamCondition()} and revision = 1`,
        );
        expect(await verify()).toEqual(expectFinding(`${card.stream}: event 1 is missing`));
      },
      SLOW,
    );

    it(
      'finds an event out of order, and a missing event at the end',
      async () => {
        await stamp(1);
        const last = `${getStreamCondition()} and revision = (select max(revision) from es.events where ${getStreamCondition()})`;
        const { rows } = await query(`select revision, pos from es.events where ${last}`);
        const { revision, pos } = rows[0] as { revision: number; pos: number };
        const eventCondition = `${getStreamCondition()} and revision = ${revision}`;
        await keep('es.events', eventCondition);
        await runUnprotected(`update es.events set tx = '3', pos = ${pos} where ${eventCondition}`);
        expect(await verify()).toEqual(
          expectFinding(
            `${card.stream}: event ${revision} comes before ${revision - 1} in the log`,
          ),
        );
        await runUnprotected(`delete from es.events where ${eventCondition}`);
        expect(await verify()).toEqual(
          expectFinding(
            `${card.stream}: the read model is at revision ${revision}, the stream ends at ${revision - 1}`,
          ),
        );
      },
      SLOW,
    );

    it(
      'finds a stream of an unknown aggregate',
      async () => {
        await query(
          `insert into es.claims values (${store.accountId}, 'other', '\\x00', 'stranger-1', 0)`,
        );
        undo.push(() => query(`delete from es.claims where stream_id = 'stranger-1'`));
        expect(await verify()).toEqual(expectFinding('stranger-1: no aggregate with that name'));
      },
      SLOW,
    );

    it(
      'finds a read model that is behind its stream',
      async () => {
        const { rows } = await query(`select * from customer_cards where ${getCardCondition()}`);
        const before = rows[0] as { revision: number; hash: Buffer; state: object };
        await stamp(1);
        await keep('customer_cards', getCardCondition());
        await query(
          `update customer_cards set revision = $1, hash = $2, state = $3 where ${getCardCondition()}`,
          [before.revision, before.hash, before.state],
        );
        expect(await verify()).toEqual(
          expectFinding(`${card.stream}: the read model is behind its stream`),
        );
      },
      SLOW,
    );
  }
});
