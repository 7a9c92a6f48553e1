import { isDeepStrictEqual } from 'node:util';
import { DataSource } from 'typeorm';
import { accountRows } from '#accounts/account.entity.js';
import { cardRows } from '#cards/card.entity.js';
import { customerRows } from '#customers/customer.entity.js';
import type { DomainEvent } from '#kernel/aggregate.js';
import { EventStore, type Head } from '#event-store/event-store.js';
import { eventHash } from '#event-store/hash-chain.js';
import { PersonalKeys } from '#event-store/personal-keys.js';
import { recorded, type RowTable } from '#event-store/rows.js';
import { rewardRows } from '#rewards/reward.entity.js';
import { customerCardRows } from '#stamping/customer-card.entity.js';
import { runScript, withServices } from './run-script.js';

const BATCH = 500;

type AnyTable = RowTable<{ accountId: number }, DomainEvent>;

const TABLES = [accountRows, cardRows, rewardRows, customerRows, customerCardRows].map(
  (rows) => rows as unknown as AnyTable,
);

/**
 * Folds every stream anew and compares: each row with its fold, each hash with the event it covers,
 * each head with the stream's last event. Says what differs and exits 1 on any difference.
 */
runScript(async () => {
  const { streams, events, faults } = await withServices(async (app) => {
    const source = app.get(DataSource);
    const store = app.get(EventStore);
    const keys = app.get(PersonalKeys);
    const counted = { streams: 0, events: 0, faults: [] as string[] };

    for await (const stream of streamsOf(source)) {
      counted.streams++;
      const rows = TABLES.find((table) => stream.name === `${table.aggregate.name}-${stream.id}`);
      if (!rows) {
        counted.faults.push(`${stream.name}: no aggregate of that name`);
        continue;
      }
      let head: Head | null = null;
      let state: { accountId: number } | undefined;
      const history = [];
      for await (const event of store.readStream(stream.name)) history.push(event);
      for (const event of history) {
        const hash = eventHash(stream.name, head, event);
        if (hash !== event.hash || event.revision !== (head === null ? 0 : head.revision + 1)) {
          counted.faults.push(`${stream.name}: event ${event.revision} breaks the hash chain`);
        }
        head = { revision: event.revision, hash: event.hash };
        counted.events++;
      }
      for (const event of await keys.opened(history)) {
        state = rows.aggregate.evolve(state, recorded(event));
      }
      if (head?.revision !== stream.revision || head.hash !== stream.hash) {
        counted.faults.push(`${stream.name}: the stream's head is not its last event`);
      }
      const [row]: { revision: number; state: object; hash: Buffer }[] = await source.query(
        `select revision, state, hash from ${rows.table} where id = $1`,
        [stream.id],
      );
      if (!row) counted.faults.push(`${stream.name}: no row`);
      else if (
        row.revision !== head?.revision ||
        row.hash.toString('hex') !== head.hash ||
        !isDeepStrictEqual(row.state, JSON.parse(JSON.stringify(state)))
      ) {
        counted.faults.push(`${stream.name}: the row is not the fold of the stream`);
      }
    }

    for (const { table, aggregate } of TABLES) {
      const orphans: { id: number }[] = await source.query(
        `select r.id from ${table} r
         where not exists (select from es.streams s where s.stream_id = $1 || r.id) limit 20`,
        [`${aggregate.name}-`],
      );
      for (const { id } of orphans) counted.faults.push(`${table} ${id}: a row without a stream`);
    }
    return counted;
  });

  for (const fault of faults.slice(0, 50)) console.error(fault);
  console.log(
    `${streams} streams, ${events} events: ${faults.length === 0 ? 'every row is the fold of its stream, every hash is right' : `${faults.length} differences`}`,
  );
  if (faults.length > 0) process.exitCode = 1;
});

type Stream = { name: string; id: number; revision: number; hash: string };

async function* streamsOf(source: DataSource): AsyncIterable<Stream> {
  for (let after = ''; ;) {
    const page: { stream_id: string; revision: number; hash: Buffer }[] = await source.query(
      `select stream_id, revision, hash from es.streams where stream_id > $1
       order by stream_id limit ${BATCH}`,
      [after],
    );
    for (const { stream_id, revision, hash } of page) {
      const id = Number(stream_id.slice(stream_id.lastIndexOf('-') + 1));
      yield { name: stream_id, id, revision, hash: hash.toString('hex') };
    }
    const last = page.at(-1);
    if (!last) return;
    after = last.stream_id;
  }
}
