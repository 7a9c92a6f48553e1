import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { testEnvironment } from '../support/database/database.js';
import { startProgram } from '../support/services/program.js';
import { startService, type Client, type Service } from '../support/services/service.js';
import { eventually } from '../support/jest/eventually.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { useWebhooks } from '../support/services/webhook-dispatcher.js';

/** `npm run verify` as an operator runs it: beside a service that goes on working. */

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
  const environment = testEnvironment(service.database.url, service.environment);
  const program = startProgram('dist/scripts/verify.js', environment, args);
  return { code: await program.exitCode, output: program.output() };
}

const finding = (sentence: string): unknown => ({
  code: 1,
  output: expect.stringContaining(sentence),
});

it(
  'finds nothing while tills stamp the same card without a pause',
  async () => {
    let verifying = true;
    const tills = Array.from({ length: 4 }, async () => {
      while (verifying) expect((await stamp(1)).status).toBe(200);
    });
    const newCustomers = (async () => {
      while (verifying) await enrol(store);
    })();
    for (let i = 0; i < 3; i++) {
      expect(await verify()).toEqual({
        code: 0,
        output: expect.stringContaining('every read model matches'),
      });
    }
    verifying = false;
    await Promise.all([...tills, newCustomers]);
  },
  SLOW,
);

describe('a difference', () => {
  let undo: (() => Promise<unknown>)[] = [];

  afterEach(async () => {
    for (const step of undo.reverse()) await step();
    undo = [];
    const { code, output } = await verify();
    if (code !== 0) throw new Error(`the next test would find the same: ${output}`);
  }, SLOW);

  /** Rows of a table that the test changes come back as they were. */
  async function keep(table: string, where: string): Promise<void> {
    const columns = await columnsOf(table);
    const name = `kept_${randomUUID().replaceAll('-', '')}`;
    await query(`create table ${name} as select ${columns} from ${table} where ${where}`);
    undo.push(() =>
      unguarded(
        `delete from ${table} where ${where}`,
        `insert into ${table} (${columns}) select * from ${name}`,
        `drop table ${name}`,
      ),
    );
  }

  /** Those that PostgreSQL does not derive from others. */
  async function columnsOf(table: string): Promise<string> {
    const { rows } = await query(
      `select string_agg(quote_ident(attname), ', ') as list from pg_attribute
       where attrelid = $1::regclass and attnum > 0 and not attisdropped and attgenerated = ''`,
      [table],
    );
    return (rows[0] as { list: string }).list;
  }

  /** As the owner of the tables with bad intentions, who takes the guard of the history away. */
  async function unguarded(...statements: string[]): Promise<void> {
    await query('alter table es.events disable trigger events_are_final');
    await query(statements.join('; ')).finally(() =>
      query('alter table es.events enable always trigger events_are_final'),
    );
  }

  const row = () => `id = ${card.id}`;
  const ofStream = () => `stream_id = '${card.stream}'`;

  it(
    'of a row from the fold is found, and repaired',
    async () => {
      await query(
        `update customer_cards set state = jsonb_set(state, '{stamps}', '99') where ${row()}`,
      );
      expect(await verify()).toEqual(finding('the read model does not match its events'));
      const repaired = await verify('--repair');
      expect(repaired.output).toContain('1 read models were repaired');
    },
    SLOW,
  );

  it(
    'of a row whose hash is another is found',
    async () => {
      await keep('customer_cards', row());
      await query(`update customer_cards set hash = sha256('other') where ${row()}`);
      expect(await verify()).toEqual(
        finding('the read model does not have the hash of its last event'),
      );
    },
    SLOW,
  );

  it(
    'that is a stream without a row is found, and repaired',
    async () => {
      await query(`delete from customer_cards where ${row()}`);
      const result = await verify();
      expect(result).toEqual(finding(`${card.stream}: the read model is missing`));
      expect(result.output.split(`${card.stream}: the read model is missing`)).toHaveLength(2);
      expect((await verify('--repair')).output).toContain('1 read models were repaired');
    },
    SLOW,
  );

  it(
    'that is a row without a stream is found',
    async () => {
      const columns = await columnsOf('customer_cards');
      const values = columns.replace(/\bid\b/, '999999999');
      await query(
        `insert into customer_cards (${columns}) select ${values} from customer_cards where ${row()}`,
      );
      undo.push(() => query('delete from customer_cards where id = 999999999'));
      expect(await verify()).toEqual(
        finding('customer_cards 999999999: the read model has no stream'),
      );
    },
    SLOW,
  );

  it(
    'of a claim that the history does not contain is found',
    async () => {
      await query(
        `insert into es.claims values ($1, 'stamp_receipt', sha256('nobody'), $2, 1),
           ($1, 'stamp_receipt', sha256('no record'), 'customer_card-888888888', 0)`,
        [store.accountId, card.stream],
      );
      undo.push(() =>
        query(`delete from es.claims where value in (sha256('nobody'), sha256('no record'))`),
      );
      const verified = await verify();
      expect(verified).toEqual(
        finding(`${card.stream}: it holds a stamp_receipt that its history does not contain`),
      );
      expect(verified).toEqual(
        finding('customer_card-888888888: claims of a record that does not exist'),
      );
    },
    SLOW,
  );

  it(
    'of a claim that the history names and nobody holds is found',
    async () => {
      await keep('es.claims', `${ofStream()} and kind = 'card_code'`);
      await query(`delete from es.claims where ${ofStream()} and kind = 'card_code'`);
      expect(await verify()).toEqual(finding(`${card.stream}: its card_code is not claimed`));
    },
    SLOW,
  );

  it(
    'of the projection version alone is none: the read model is projected again when it is loaded',
    async () => {
      await keep('customer_cards', row());
      await query(`update customer_cards set projection_version = 0 where ${row()}`);
      const { code, output } = await verify();
      expect(output).toContain('1 read models are of an older projection version');
      expect(code).toBe(0);
    },
    SLOW,
  );

  it(
    "of a row that is another store's is found",
    async () => {
      await keep('customer_cards', row());
      await query(`update customer_cards set account_id = account_id + 1 where ${row()}`);
      expect(await verify()).toEqual(
        finding(`${card.stream}: the read model belongs to another account`),
      );
    },
    SLOW,
  );

  describe('of the table of the history from the log', () => {
    const { startDispatcher } = useWebhooks(() => service);

    // More than are compared at a time.
    beforeAll(async () => {
      const till = async () => {
        for (let i = 0; i < 330; i++) expect((await stamp(1)).status).toBe(200);
      };
      await Promise.all(Array.from({ length: 16 }, till));
    }, SLOW);

    /** The numbers of the card's events, when all are there. */
    async function numbers(): Promise<number[]> {
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
      'is found: a row that is missing, at the end as well, and one that is of no event',
      async () => {
        const [first = -1] = await numbers();
        const last = (await service.history()).length - 1;
        await keep('history', `seq in (${first}, ${last})`);
        await query(`insert into history select (jsonb_populate_record(h, jsonb_build_object(
          'seq', ${last + 1}, 'event_id', gen_random_uuid(), 'revision', 999999))).*
          from history h where seq = ${first}`);
        undo.push(() => query(`delete from history where seq = ${last + 1}`));
        await query(`delete from history where seq in (${first}, ${last})`);
        const verified = await verify();
        expect(verified).toEqual(
          finding(`history: number ${first}: event 0 of ${card.stream} is missing`),
        );
        expect(verified).toEqual(finding(`history: number ${last}: event`));
        expect(verified).toEqual(
          finding(`history: number ${last + 1}: event 999999 of ${card.stream} is not in the log`),
        );
      },
      SLOW,
    );

    it(
      'is found: a row of another event, or with another time or place',
      async () => {
        const [first = -1, second = -1] = await numbers();
        await keep('history', `seq in (0, ${first}, ${second})`);
        await query(`update history set event_id = gen_random_uuid() where seq = ${first}`);
        await query(`update history set recorded_at = recorded_at - interval '1 second',
                     revision = 77777 where seq = ${second}`);
        await query(`update history set position = replace(position, '0', '1') where seq = 0`);
        const verified = await verify();
        for (const sentence of [
          `number ${first}: is event 0 of ${card.stream}, and in the log event 0 of ${card.stream}`,
          `number ${second}: event 1 of ${card.stream} is not what the log says (revision, recorded_at)`,
          'number 0: event 0 of account-',
          'is not what the log says (position)',
        ]) {
          expect(verified).toEqual(finding(sentence));
        }
        expect(verified.output).toContain('3 differences');
      },
      SLOW,
    );
  });

  // In EventStoreDB nobody but its own administrator can change what was written.
  if (ON_POSTGRES) {
    it(
      'of an event from its hash is found',
      async () => {
        await keep('es.events', `${ofStream()} and revision = 1`);
        await unguarded(
          `update es.events set data = jsonb_set(data, '{stamps}', '5') where ${ofStream()} and revision = 1`,
        );
        expect(await verify()).toEqual(finding(`${card.stream}: event 1 breaks the hash chain`));
      },
      SLOW,
    );

    it(
      'of the number of events is found',
      async () => {
        await keep('es.events', `${ofStream()} and revision = 1`);
        await unguarded(`delete from es.events where ${ofStream()} and revision = 1`);
        expect(await verify()).toEqual(finding(`${card.stream}: event 1 is missing`));
      },
      SLOW,
    );

    it(
      'that is an event missing at the end, or an event out of order, is found',
      async () => {
        await stamp(1);
        const last = `${ofStream()} and revision = (select max(revision) from es.events where ${ofStream()})`;
        const { rows } = await query(`select revision, pos from es.events where ${last}`);
        const { revision, pos } = rows[0] as { revision: number; pos: number };
        const its = `${ofStream()} and revision = ${revision}`;
        await keep('es.events', its);
        await unguarded(`update es.events set tx = '3', pos = ${pos} where ${its}`);
        expect(await verify()).toEqual(
          finding(`${card.stream}: event ${revision} comes before ${revision - 1} in the log`),
        );
        await unguarded(`delete from es.events where ${its}`);
        expect(await verify()).toEqual(
          finding(
            `${card.stream}: the read model is at revision ${revision}, the stream ends at ${revision - 1}`,
          ),
        );
      },
      SLOW,
    );

    it(
      'that is a stream of no kind of record is found',
      async () => {
        await query(
          `insert into es.streams values ('stranger-1', ${store.accountId}, 0, sha256('other'))`,
        );
        undo.push(() => query(`delete from es.streams where stream_id = 'stranger-1'`));
        expect(await verify()).toEqual(finding('stranger-1: no aggregate with that name'));
      },
      SLOW,
    );

    it(
      'that is a stream without a head, or with the head of another event, is found',
      async () => {
        await keep('es.streams', ofStream());
        await unguarded(`update es.streams set hash = sha256('other') where ${ofStream()}`);
        expect(await verify()).toEqual(
          finding(`${card.stream}: the stream's head is not its last event`),
        );
        await unguarded(`delete from es.streams where ${ofStream()}`);
        expect(await verify()).toEqual(finding(`${card.stream}: the stream has no head`));
      },
      SLOW,
    );

    it(
      'of a row that is behind its stream is found',
      async () => {
        const { rows } = await query(`select * from customer_cards where ${row()}`);
        const before = rows[0] as { revision: number; hash: Buffer; state: object };
        await stamp(1);
        await keep('customer_cards', row());
        await query(
          `update customer_cards set revision = $1, hash = $2, state = $3 where ${row()}`,
          [before.revision, before.hash, before.state],
        );
        expect(await verify()).toEqual(
          finding(`${card.stream}: the read model is behind its stream`),
        );
      },
      SLOW,
    );
  }
});
