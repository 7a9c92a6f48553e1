import { parseArgs } from 'node:util';
import { setTimeout as wait } from 'node:timers/promises';
import type pg from 'pg';
import { readConfig, type Config } from '#configuration/config.js';
import { ConfigError } from '#kernel/config-error.js';
import { connectFirst } from '#database/first-connection.js';
import { createApplicationName, createDataSource, getPool } from '#database/data-source.js';
import { inTransaction } from '#database/connection.js';
import { groupAppends } from '#event-store/postgres/append-groups.js';
import {
  BEGINNING,
  type EventStore,
  type Head,
  type Position,
  type StoredEvent,
} from '#event-store/port/event-store.js';
import { EventStoreDbEventStore } from '#event-store/eventstoredb/eventstoredb-event-store.js';
import { hashChain } from '#event-store/port/hash-chain.js';
import { MasterKeys } from '#database/master-keys.js';
import { PersonalKeys } from '#event-store/personal-keys/personal-keys.js';
import { formatPosition, isAfter, parsePosition } from '#event-store/port/position.js';
import { MOVED_TO_EVENTSTOREDB, MOVED_TO_POSTGRES } from '#event-store/log/positions-check.js';
import { PostgresEventStore } from '#event-store/postgres/postgres-event-store.js';
import { ReadModels } from '#event-store/read-models/read-models.js';
import { customerSubjects } from '#stamping/customer-subjects.js';
import { readModels } from '../apps/read-models.js';
import { runScript, printInstallation } from './run-script.js';
import { refuseWhileConnected, withServicesStopped } from './stopped-services.js';

type Engine = 'postgres' | 'eventstoredb';

const SCRIPT = 'move-events';
const COPY = 'move-events copy';
const BATCH = 500;
const READABLE_WITHIN_MS = 30_000;
/** Mark which engine the positions in the database belong to. */
const MARKERS: Record<Engine, string> = {
  postgres: MOVED_TO_POSTGRES,
  eventstoredb: MOVED_TO_EVENTSTOREDB,
};

/**
 * Copies the history to the other engine, in log order: ids, revisions, metadata and hashes stay the same.
 * May be killed at any time and run again. Rows and claims are in PostgreSQL either way.
 */
runScript(async () => {
  const to = parseTarget(process.argv.slice(2));
  const config = readConfig(process.env);
  if (config.eventStoreUrl === null) {
    throw new ConfigError(
      'EVENT_STORE_URL must be set: one of the two engines is KurrentDB (EventStoreDB).',
    );
  }
  printInstallation(config);
  await withServicesStopped(config.databaseUrl, SCRIPT, (guard) => move(guard, config, to));
});

function parseTarget(args: string[]): Engine {
  const usage = new ConfigError('Usage: npm run move-events -- --to eventstoredb | --to postgres');
  let to: string | undefined;
  try {
    ({ to } = parseArgs({ args, options: { to: { type: 'string' } } }).values);
  } catch (cause) {
    throw new ConfigError(usage.message, { cause });
  }
  if (to !== 'postgres' && to !== 'eventstoredb') throw usage;
  return to;
}

async function move(guard: pg.Client, config: Config, to: Engine): Promise<void> {
  const database = await connectFirst(config.databaseUrl, () =>
    createDataSource(config, COPY).initialize(),
  );
  const pool = getPool(database);
  const postgres = new PostgresEventStore(pool, config);
  const keys = await createPersonalKeys(pool, config);
  const eventstoredb = new EventStoreDbEventStore(pool, keys, config, readModels);
  const [from, target] = to === 'postgres' ? [eventstoredb, postgres] : [postgres, eventstoredb];
  try {
    await refuseOpenIntents(guard);
    await waitUntilReadable(guard);
    if (to === 'eventstoredb') await eventstoredb.claimForOurs();
    const copied = await copy(from, target);
    await waitUntilReadable(guard);
    const moved = await isMoved(guard, to);
    const {
      events,
      streams: heads,
      newPositions,
    } = await compare(from, target, moved ? [] : await readPositions(guard));
    if (to === 'postgres') await catchUpReadModels(pool, config, target, heads);
    await refuseWhileConnected(guard, createApplicationName(config, COPY));
    if (!moved) await applyPositions(pool, to, target, newPositions);
    console.log(
      `${to} holds all ${events} events of ${heads.size} streams, ${copied} of them copied in this run; order, ids and hashes match`,
    );
  } finally {
    await eventstoredb.onApplicationShutdown();
    await postgres.onApplicationShutdown();
    await database.destroy();
  }
}

/** Refuses to move while a commit is unfinished: events that a dead process was about to append would be missing. */
async function refuseOpenIntents(guard: pg.Client): Promise<void> {
  const { rowCount } = await guard.query('select from es.intents limit 1');
  if (rowCount === 0) return;
  throw new ConfigError(
    'A commit to KurrentDB (EventStoreDB) is unfinished. Run the dispatcher with EVENT_STORE_URL for a minute, stop it, and try again.',
  );
}

/** Waits until every event is readable. Readers stop below the oldest transaction running anywhere on the server. */
async function waitUntilReadable(guard: pg.Client): Promise<void> {
  for (const deadline = performance.now() + READABLE_WITHIN_MS; ;) {
    const { rowCount } = await guard.query(
      `select from (select e.tx from es.events e order by e.tx desc, e.pos desc limit 1) last
       where last.tx >= pg_snapshot_xmin(pg_current_snapshot())`,
    );
    if (rowCount === 0) return;
    if (performance.now() > deadline) {
      throw new ConfigError(
        'The last events in PostgreSQL cannot be read: end the open transaction on the server (or, after restoring a dump, run npm run rebase-positions), and try again.',
      );
    }
    await wait(200);
  }
}

/** @returns how many events the target did not have */
async function copy(from: EventStore, target: EventStore): Promise<number> {
  const heads = new Map<string, Head>();
  for await (const { stream, revision, hash } of readEvents(target)) {
    heads.set(stream, { revision, hash });
  }
  let copied = 0;
  for await (const group of groupAppends(findMissing(readEvents(from), heads))) {
    await append(target, group[0].stream, heads, group);
    copied += group.length;
  }
  return copied;
}

/** @throws when an event that both have is not the same */
async function* findMissing(
  events: AsyncIterable<StoredEvent>,
  heads: Map<string, Head>,
): AsyncIterable<StoredEvent> {
  for await (const event of events) {
    const head = heads.get(event.stream);
    if (!head || event.revision > head.revision) yield event;
    else if (event.revision === head.revision && event.hash !== head.hash) {
      throw createDifferenceError(event.stream);
    }
  }
}

async function append(
  target: EventStore,
  stream: string,
  heads: Map<string, Head>,
  events: StoredEvent[],
): Promise<void> {
  const expected = heads.get(stream) ?? null;
  const added = events.map(({ id, type, version, data, meta }) => ({
    id,
    type,
    version,
    data,
    meta,
  }));
  const chained = hashChain(stream, expected, added);
  const fits = events.every(
    ({ revision, hash }, i) => chained[i]?.revision === revision && chained[i]?.hash === hash,
  );
  // Checked before writing: an append cannot be undone.
  if (!fits) throw createDifferenceError(stream);
  const [head] = await target.commit({
    accountId: events[0]?.meta.accountId ?? 0,
    writes: [{ stream, expected, events: added }],
  });
  if (head) heads.set(stream, head);
}

type Compared = {
  events: number;
  streams: Map<string, Head>;
  newPositions: Map<string, Position | null>;
};

/**
 * Reads both logs side by side. The same events in the same order are the same streams; along the way, each
 * of the source's positions is mapped to the target's position of the last event at or before it.
 */
async function compare(
  from: EventStore,
  target: EventStore,
  positions: Position[],
): Promise<Compared> {
  const open = [...positions].sort((a, b) => (isAfter(a, b) ? 1 : -1));
  const newPositions = new Map<string, Position | null>();
  const streams = new Map<string, Head>();
  let events = 0;
  let lastPosition: Position | null = null;
  const copies = readEvents(target);
  const mapPositionsBefore = (next?: Position) => {
    for (let p = open[0]; p && (!next || isAfter(next, p)); p = open[0]) {
      newPositions.set(formatPosition(p), lastPosition);
      open.shift();
    }
  };
  for await (const event of readEvents(from)) {
    const { value } = await copies.next();
    if (value?.id !== event.id || value.stream !== event.stream || value.hash !== event.hash) {
      throw createDifferenceError(event.stream);
    }
    mapPositionsBefore(event.position);
    lastPosition = value.position;
    streams.set(event.stream, event);
    events++;
  }
  mapPositionsBefore();
  const { value: extra } = await copies.next();
  if (extra) throw createDifferenceError(extra.stream);
  return { events, streams, newPositions };
}

function createDifferenceError(stream: string): ConfigError {
  return new ConfigError(
    `The two histories differ at ${stream}: one has events that the other lacks, or in a different order. Nothing was switched.`,
  );
}

async function* readEvents(store: EventStore): AsyncGenerator<StoredEvent, undefined> {
  for (let after = BEGINNING; ;) {
    const page = await store.readAll(after, BATCH);
    yield* page;
    const last = page.at(-1);
    if (!last) return undefined;
    after = last.position;
  }
}

/** Updates the read models. With PostgreSQL, unlike with EventStoreDB, none may lag behind its stream. */
async function catchUpReadModels(
  pool: pg.Pool,
  config: Config,
  store: EventStore,
  streams: Map<string, Head>,
): Promise<void> {
  const rows = new ReadModels(pool, store, await createPersonalKeys(pool, config));
  for (const tables of readModels) {
    const prefix = `${tables.aggregate.name}-`;
    const { rows: knownStreams } = await pool.query<{ id: number; revision: number }>(
      `select id, revision from ${tables.table}`,
    );
    const revisions = new Map(knownStreams.map(({ id, revision }) => [id, revision]));
    for (const [stream, head] of streams) {
      if (!stream.startsWith(prefix)) continue;
      const id = Number(stream.slice(prefix.length));
      if ((revisions.get(id) ?? -1) < head.revision) await rows.catchUp(tables, id);
    }
  }
}

/** Tells whether an earlier run has completed: then the positions are already the target's. */
async function isMoved(guard: pg.Client, to: Engine): Promise<boolean> {
  const { rowCount } = await guard.query('select from es.checkpoints where subscription = $1', [
    MARKERS[to],
  ]);
  return rowCount !== 0;
}

async function readPositions(guard: pg.Client): Promise<Position[]> {
  const { rows } = await guard.query<{ position: string }>(
    `select position from es.checkpoints where subscription <> all ($1)
     union select active_from from webhook_subscriptions where active_from is not null
     union select active_from from webhook_active_spans
     union select active_until from webhook_active_spans
     union select log_head from webhook_replays where log_head is not null`,
    [Object.values(MARKERS)],
  );
  return rows.map((row) => parsePosition(row.position));
}

async function applyPositions(
  pool: pg.Pool,
  to: Engine,
  target: EventStore,
  newPositions: Map<string, Position | null>,
): Promise<void> {
  const mapped = [
    [...newPositions.keys()],
    [...newPositions.values()].map((position) => position && formatPosition(position)),
  ];
  await inTransaction(pool, async (client) => {
    await client.query('delete from es.checkpoints where subscription = any ($1)', [
      Object.values(MARKERS),
    ]);
    // A subscription that has not processed any event has no checkpoint.
    await client.query(
      `delete from es.checkpoints c using unnest($1::text[], $2::text[]) as p (old, new)
       where c.position = p.old and p.new is null`,
      mapped,
    );
    await client.query(
      `update es.checkpoints c set position = p.new, updated_at = now()
       from unnest($1::text[], $2::text[]) as p (old, new) where c.position = p.old`,
      mapped,
    );
    for (const [table, column] of [
      ['webhook_subscriptions', 'active_from'],
      ['webhook_active_spans', 'active_from'],
      ['webhook_active_spans', 'active_until'],
      ['webhook_replays', 'log_head'],
    ] as const) {
      await client.query(
        `update ${table} t set ${column} = coalesce(p.new, $3)
         from unnest($1::text[], $2::text[]) as p (old, new) where t.${column} = p.old`,
        [...mapped, formatPosition(BEGINNING)],
      );
    }
    await applyHistoryPositions(client, target);
    await client.query('insert into es.checkpoints (subscription, position) values ($1, $2)', [
      MARKERS[to],
      formatPosition(BEGINNING),
    ]);
  });
}

/**
 * Updates the positions in the history. The entries and their numbers stay as they are: the order of the log is the
 * same.
 */
async function applyHistoryPositions(client: pg.ClientBase, target: EventStore): Promise<void> {
  let page: StoredEvent[] = [];
  const flush = async () => {
    await client.query(
      `update history h set position = p.new
       from unnest($1::uuid[], $2::text[]) as p (event_id, new) where h.event_id = p.event_id`,
      [page.map(({ id }) => id), page.map(({ position }) => formatPosition(position))],
    );
    page = [];
  };
  for await (const event of readEvents(target)) {
    page.push(event);
    if (page.length === BATCH) await flush();
  }
  await flush();
}

async function createPersonalKeys(pool: pg.Pool, config: Config): Promise<PersonalKeys> {
  const masterKeys = new MasterKeys(pool, config);
  await masterKeys.onModuleInit();
  return new PersonalKeys(pool, masterKeys, customerSubjects);
}
