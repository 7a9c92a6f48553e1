import { isDeepStrictEqual } from 'node:util';
import { DataSource } from 'typeorm';
import { BEGINNING, EventStore, type Head } from '#event-store/event-store.js';
import { eventHash } from '#event-store/hash-chain.js';
import { PersonalKeys } from '#event-store/personal-keys.js';
import { recorded } from '#event-store/rows.js';
import { rowTables } from '../apps/row-tables.js';
import { runScript, withServices } from './run-script.js';

const BATCH = 500;
const TRIES = 5;

/**
 * Folds every stream again and compares each row with its fold, each hash with the event it covers, and
 * each head with the stream's last event. Prints what differs and exits 1 on any difference.
 */
runScript(async () => {
  const { streams, events, faults } = await withServices(async (app) => {
    const source = app.get(DataSource);
    const store = app.get(EventStore);
    const keys = app.get(PersonalKeys);
    const counted = { streams: 0, events: 0, faults: [] as string[] };

    const streams = await streamsIn(store);
    if (!store.rowsMayLag) await checkHeads(source, streams, counted.faults);
    for (const [stream, count] of streams) {
      const checked = await check(stream, { source, store, keys });
      counted.streams++;
      counted.events += checked.events;
      counted.faults.push(...checked.faults);
      if (checked.events < count) {
        counted.faults.push(
          `${stream}: the log shows ${count} events, the stream ${checked.events}`,
        );
      }
    }

    for (const { table, aggregate } of rowTables) {
      const rows: { id: number }[] = await source.query(`select id from ${table}`);
      for (const { id } of rows) {
        if (!streams.has(`${aggregate.name}-${id}`)) {
          counted.faults.push(`${table} ${id}: the row has no stream`);
        }
      }
    }
    return counted;
  });

  for (const fault of faults.slice(0, 50)) console.error(fault);
  console.log(
    `${streams} streams, ${events} events: ${faults.length === 0 ? 'every row is the fold of its stream, every hash is correct' : `${faults.length} differences`}`,
  );
  if (faults.length > 0) process.exitCode = 1;
});

type Services = { source: DataSource; store: EventStore; keys: PersonalKeys };

async function check(
  stream: string,
  { source, store, keys }: Services,
): Promise<{ events: number; faults: string[] }> {
  const id = Number(stream.slice(stream.lastIndexOf('-') + 1));
  const rows = rowTables.find(({ aggregate }) => stream === `${aggregate.name}-${id}`);
  if (!rows) return { events: 0, faults: [`${stream}: no aggregate with that name`] };
  for (let tries = 1; ; tries++) {
    const faults: string[] = [];
    let head: Head | null = null;
    let state: { accountId: number } | undefined;
    const history = [];
    for await (const event of store.readStream(stream)) history.push(event);
    for (const event of history) {
      const hash = eventHash(stream, head, event);
      if (hash !== event.hash || event.revision !== (head === null ? 0 : head.revision + 1)) {
        faults.push(`${stream}: event ${event.revision} breaks the hash chain`);
      }
      head = { revision: event.revision, hash: event.hash };
    }
    for (const event of await keys.opened(history)) {
      state = rows.aggregate.evolve(state, recorded(event));
    }
    const [row]: { revision: number; state: object; hash: Buffer }[] = await source.query(
      `select revision, state, hash from ${rows.table} where id = $1`,
      [id],
    );
    // It is being written to right now: checked again, so that a running service can be verified.
    if (row && head && row.revision !== head.revision && tries < TRIES) continue;
    if (!row) faults.push(`${stream}: the row is missing`);
    else if (
      row.revision !== head?.revision ||
      row.hash.toString('hex') !== head.hash ||
      !isDeepStrictEqual(row.state, JSON.parse(JSON.stringify(state)))
    ) {
      faults.push(`${stream}: the row is not the fold of the stream`);
    }
    return { events: history.length, faults };
  }
}

/** Every stream of the log with its number of events, by reading all of it in order. */
async function streamsIn(store: EventStore): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (let after = BEGINNING; ;) {
    const page = await store.readAll(after, BATCH);
    for (const { stream, revision } of page) {
      const count = counts.get(stream) ?? 0;
      if (revision !== count) throw new Error(`${stream}: revision ${revision} is out of order`);
      counts.set(stream, count + 1);
    }
    const last = page.at(-1);
    if (!last) return counts;
    after = last.position;
  }
}

/** PostgreSQL stores a head with each stream; with another engine these heads are stale. */
async function checkHeads(
  source: DataSource,
  streams: Map<string, number>,
  faults: string[],
): Promise<void> {
  const heads: { stream_id: string; revision: number; right: boolean }[] = await source.query(
    `select s.stream_id, s.revision, e.hash is not distinct from s.hash as right
     from es.streams s
     left join es.events e on e.stream_id = s.stream_id and e.revision = s.revision`,
  );
  for (const { stream_id, revision, right } of heads) {
    if (!right || revision + 1 < (streams.get(stream_id) ?? 0)) {
      faults.push(`${stream_id}: the stream's head is not its last event`);
    }
  }
}
