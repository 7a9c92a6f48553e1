import pg from 'pg';
import { readModels } from '../dist/apps/read-models.js';
import { HistoryTable } from '../dist/libs/loyalty/history/history-table.service.js';
import { hashLeaf } from '../dist/libs/outbound/transparency/leaf.js';
import { Tree } from '../dist/libs/outbound/transparency/tree.service.js';
import { createDataSource, getPool } from '../dist/libs/platform/database/data-source.js';
import { EventTypes } from '../dist/libs/platform/event-store/port/event-types.js';
import { BEGINNING } from '../dist/libs/platform/event-store/port/event-store.js';
import { PostgresEventStore } from '../dist/libs/platform/event-store/postgres/postgres-event-store.js';
import { readConfig } from '../dist/libs/configuration/config.js';
import { cpuTime } from './cpu-time.mjs';

/**
 * Fills the table of the history, and then the tree, from a log that is there already, as the dispatcher does. Prints
 * what each cost, in µs of CPU time an event: in this process and in the PostgreSQL process that writes. Reading the
 * log is told apart, because it goes through another connection and both read it anyway.
 */
const BATCH = { history: 1_000, tree: 2_000 };

const config = readConfig(process.env);
const source = await createDataSource(config, 'bench').initialize();
const store = new PostgresEventStore(getPool(source));
// Integers as the service reads them.
pg.types.setTypeParser(pg.types.builtins.INT8, Number);
const writer = new pg.Pool({ connectionString: config.databaseUrl, max: 1 });
const { rows: backends } = await writer.query('select pg_backend_pid() as pid');

const types = new EventTypes(readModels);
const table = new HistoryTable(writer, types);
const tree = new Tree(writer);

let { position, end } = await table.getProgress();
const history = await follow(position, BATCH.history, async (events, to) => {
  const { entries } = await table.createNextEntries(events, end);
  await table.add(position, to, entries, end);
  position = to;
  end = entries.at(-1);
});
let { edge } = await tree.read();
const proof = await follow(BEGINNING, BATCH.tree, async (events, to) => {
  edge = await tree.append(edge, events.map(hashLeaf), to);
});
// For the readers that come next.
await writer.query('vacuum analyze history');
console.log(JSON.stringify({ history, proof }));
await writer.end();
await store.onApplicationShutdown();
await source.destroy();

async function follow(after, batch, work) {
  const used = { events: 0, reading: 0, node: 0 };
  const before = cpuTime(backends[0].pid);
  for (let from = after; ;) {
    const reading = process.cpuUsage();
    const events = await store.readAll(from, batch);
    used.reading += microseconds(process.cpuUsage(reading));
    const last = events.at(-1);
    if (!last) break;
    const working = process.cpuUsage();
    await work(events, last.position);
    used.node += microseconds(process.cpuUsage(working));
    used.events += events.length;
    from = last.position;
  }
  const now = cpuTime(backends[0].pid);
  return {
    events: used.events,
    reading: used.reading / used.events,
    node: used.node / used.events,
    postgres: now === null ? null : (now - before) / used.events,
  };
}

function microseconds({ user, system }) {
  return user + system;
}
