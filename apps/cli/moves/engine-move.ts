import { setTimeout as wait } from 'node:timers/promises';
import type pg from 'pg';
import type { Config } from '#configuration/config.js';
import { ConfigError } from '#platform/kernel/config-error.js';
import { inTransaction } from '#platform/database/connection.js';
import type { DatabasePool } from '#platform/database/database-pool.js';
import { MasterKeys } from '#platform/database/master-keys.js';
import { RemainingWrites } from '#platform/event-store/eventstoredb/remaining-writes.js';
import { StreamCallbacks } from '#platform/event-store/commands/stream-callbacks.js';
import { EventStoreDbConnection } from '#platform/event-store/eventstoredb/eventstoredb-connection.js';
import { EventStoreDbEventStore } from '#platform/event-store/eventstoredb/eventstoredb-event-store.js';
import { EventStoreDbHistoryWriter } from '#platform/event-store/eventstoredb/eventstoredb-history-writer.js';
import {
  closeIntent,
  findDamaged,
  unsealIntent,
} from '#platform/event-store/eventstoredb/intents.js';
import { hasHistory } from '#platform/event-store/eventstoredb/eventstoredb-identity.js';
import { EventStoreDbReader } from '#platform/event-store/eventstoredb/eventstoredb-reader.js';
import { isAppended } from '#platform/event-store/eventstoredb/stream-heads.js';
import { OwnStreams } from '#platform/event-store/eventstoredb/eventstoredb-streams.js';
import {
  MOVED_TO_EVENTSTOREDB,
  MOVED_TO_POSTGRES,
} from '#platform/event-store/log/positions-check.js';
import { PersonalKeys } from '#platform/event-store/personal-keys/personal-keys.js';
import {
  BEGINNING,
  type EventStore,
  type Head,
  type Position,
  type Write,
} from '#platform/event-store/port/event-store.js';
import { formatPosition, parsePosition } from '#platform/event-store/port/position.js';
import { PostgresEventStore } from '#platform/event-store/postgres/postgres-event-store.js';
import { PostgresHistoryWriter } from '#platform/event-store/postgres/postgres-history-writer.js';
import { READ_MODELS_SUBSCRIPTION } from '#platform/event-store/port/subscription-position.js';
import { ReadModels } from '#platform/event-store/read-models/read-models.js';
import { customerSubjects } from '#loyalty/stamping/customer-subjects.js';
import { readModels } from '../../read-models.js';
import { copyHistory, type CopiedHistory, type Engines } from './history-copy.js';
import { listPositions } from '../logged-positions.js';
import { Progress } from '../progress.js';

export type Engine = 'postgres' | 'eventstoredb';

const READABLE_WITHIN_MS = 30_000;
/** Mark which engine the positions in the database belong to. */
export const MARKERS: Record<Engine, string> = {
  postgres: MOVED_TO_POSTGRES,
  eventstoredb: MOVED_TO_EVENTSTOREDB,
};

/**
 * Moves the history of a database from one engine to the other, in log order: ids, revisions, metadata and hashes stay
 * the same. Nothing else may be running. May be killed at any time and run again.
 */
export class EngineMove {
  private readonly postgres: PostgresEventStore;
  private readonly eventstoredb: EventStoreDbEventStore;
  private readonly engines: Engines;
  private readonly writer: EventStoreDbHistoryWriter | undefined;
  private readonly keys: PersonalKeys;

  /** @param masterKeys that are loaded */
  constructor(
    private readonly pool: DatabasePool,
    config: Config & { eventStoreUrl: string },
    masterKeys: MasterKeys,
    private readonly to: Engine,
  ) {
    this.keys = new PersonalKeys(pool, masterKeys, customerSubjects);
    this.postgres = new PostgresEventStore(pool);
    this.eventstoredb = new EventStoreDbEventStore(pool, this.keys, config, readModels);
    if (to === 'postgres') {
      const writer = new PostgresHistoryWriter(pool);
      this.engines = { from: this.eventstoredb, target: this.postgres, writer };
    } else {
      this.writer = new EventStoreDbHistoryWriter(
        config.eventStoreUrl,
        config.eventStoreStreamPrefix,
      );
      this.engines = { from: this.postgres, target: this.eventstoredb, writer: this.writer };
    }
  }

  /** Copies all events that the target lacks, and compares the others. */
  async copy(): Promise<CopiedHistory> {
    await refuseOpenIntents(this.pool);
    await waitUntilReadable(this.pool);
    if (this.to === 'eventstoredb') await this.eventstoredb.claimForOurs();
    const positions = (await this.isMoved()) ? [] : await readPositions(this.pool);
    const progress = new Progress('events copied', await countExpectedEvents(this.pool));
    const copied = await copyHistory(this.engines, positions, progress);
    if (this.to === 'postgres')
      await catchUpReadModels(this.pool, this.postgres, this.keys, copied.heads);
    return copied;
  }

  /** Gives the database the positions of the target, in one transaction, unless an earlier run has done that. */
  async switchOver(copied: CopiedHistory): Promise<void> {
    if (await this.isMoved()) return;
    await applyPositions(this.pool, this.to, copied);
  }

  /** Completes in PostgreSQL the commits of which a damaged stream on KurrentDB has only a part. */
  async completeCommits(): Promise<void> {
    const rows = new ReadModels(this.pool, this.postgres, this.keys);
    new StreamCallbacks(this.postgres, rows, this.keys, readModels).onModuleInit();
    for (const stored of await findDamaged(this.pool)) {
      const intent = await unsealIntent(this.keys, stored);
      const { accountId, writes } = intent.content;
      const append = async (write: Write) => {
        if (await isAppended(this.postgres, write)) return;
        await this.postgres.commit({ accountId, writes: [write] });
      };
      const [first, ...rest] = writes;
      if (!first) continue;
      await append(first);
      const appended = await new RemainingWrites({ append }, this.postgres).append(first, rest);
      await closeIntent(this.pool, { ...intent, content: { ...intent.content, writes: appended } });
    }
  }

  async close(): Promise<void> {
    await this.writer?.close();
    await this.eventstoredb.onApplicationShutdown();
    await this.postgres.onApplicationShutdown();
  }

  /** Tells whether an earlier run has switched to the target. */
  async isMoved(): Promise<boolean> {
    const { rowCount } = await this.pool.query('select from es.positions where subscription = $1', [
      MARKERS[this.to],
    ]);
    return rowCount !== 0;
  }
}

/** Tells whether the server has a history under our prefix, of whatever database. */
export async function hasEventStoreDbHistory(
  config: Config & { eventStoreUrl: string },
): Promise<boolean> {
  const connection = new EventStoreDbConnection(config.eventStoreUrl);
  try {
    const beginnings = readModels.map(({ name }) => `${name}-`);
    const streams = new OwnStreams(config.eventStoreStreamPrefix, beginnings);
    return await hasHistory(new EventStoreDbReader(connection, streams), streams, readModels);
  } finally {
    await connection.dispose();
  }
}

/**
 * Refuses to move while a commit is unfinished: events that a dead process was about to append would be missing. One that
 * waits for a repair is completed after the move.
 */
async function refuseOpenIntents(pool: pg.Pool): Promise<void> {
  const { rowCount } = await pool.query('select from es.intents where damage is null limit 1');
  if (rowCount === 0) return;
  throw new ConfigError(
    'A commit to KurrentDB (EventStoreDB) is unfinished. Run the dispatcher with EVENT_STORE_URL for a minute, stop it, and try again.',
  );
}

/** Waits until every event is readable. Readers stop below the oldest transaction running anywhere on the server. */
async function waitUntilReadable(pool: pg.Pool): Promise<void> {
  for (const deadline = performance.now() + READABLE_WITHIN_MS; ;) {
    const { rowCount } = await pool.query(
      `select from (select e.tx from es.events e order by e.tx desc, e.pos desc limit 1) last
       where last.tx >= pg_snapshot_xmin(pg_current_snapshot())`,
    );
    if (rowCount === 0) return;
    if (performance.now() > deadline) {
      throw new ConfigError(
        'The last events in PostgreSQL cannot be read: end the open transaction on the server (or, after restoring a dump, run inkpad rebase-positions), and try again.',
      );
    }
    await wait(200);
  }
}

/** Counts what the history table has; the log may have a few more. */
async function countExpectedEvents(pool: pg.Pool | pg.ClientBase): Promise<number> {
  const { rows } = await pool.query<{ n: number }>(
    'select coalesce(max(seq) + 1, 0) as n from history',
  );
  return rows[0]?.n ?? 0;
}

/** Updates the read models. With PostgreSQL, unlike with EventStoreDB, none may lag behind its stream. */
export async function catchUpReadModels(
  pool: DatabasePool,
  store: EventStore,
  keys: PersonalKeys,
  streams: Map<string, Head>,
): Promise<void> {
  const rows = new ReadModels(pool, store, keys);
  for (const tables of readModels) {
    const prefix = `${tables.name}-`;
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

async function readPositions(pool: pg.Pool): Promise<Position[]> {
  return (await listPositions(pool)).map(parsePosition);
}

async function applyPositions(
  pool: pg.Pool,
  to: Engine,
  { newPositions, end, targetPositions }: CopiedHistory,
): Promise<void> {
  const mapped = [
    [...newPositions.keys()],
    [...newPositions.values()].map((position) => position && formatPosition(position)),
  ];
  await inTransaction(pool, async (client) => {
    await client.query('delete from es.positions where subscription = any ($1)', [
      Object.values(MARKERS),
    ]);
    // A subscription that has not processed any event has no position.
    await client.query(
      `delete from es.positions c using unnest($1::text[], $2::text[]) as p (old, new)
       where c.position = p.old and p.new is null`,
      mapped,
    );
    await client.query(
      `update es.positions c set position = p.new, updated_at = now()
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
    if (to === 'eventstoredb') {
      // None lags in PostgreSQL. Without a position each start would read the whole log for ids beyond them.
      await client.query(
        `insert into es.positions (subscription, position) values ($1, $2)
         on conflict (subscription) do update set position = excluded.position, updated_at = now()`,
        [READ_MODELS_SUBSCRIPTION, formatPosition(end)],
      );
    }
    await applyHistoryPositions(client, targetPositions);
    await client.query('insert into es.positions (subscription, position) values ($1, $2)', [
      MARKERS[to],
      formatPosition(BEGINNING),
    ]);
  });
}

/**
 * Updates the positions in the history. The entries and their numbers stay as they are: the order of the log is the
 * same, and an entry's number is its event's place in the log.
 */
async function applyHistoryPositions(
  client: pg.ClientBase,
  positions: BigUint64Array[],
): Promise<void> {
  const count = await countExpectedEvents(client);
  const progress = new Progress('positions updated', count);
  // Otherwise each statement might read the whole table.
  await client.query('set local enable_hashjoin = off; set local enable_mergejoin = off');
  let first = 0;
  let updated = 0;
  for (const numbers of positions) {
    const { rowCount } = await client.query({
      name: 'move_history_positions',
      text: `update history h set position = p.new
             from unnest($2::text[]) with ordinality as p (new, nth) where h.seq = $1 + p.nth - 1`,
      values: [first, formatPositions(numbers)],
    });
    progress.add(rowCount ?? 0);
    updated += rowCount ?? 0;
    first += numbers.length / 2;
  }
  if (updated !== count) {
    throw new ConfigError(
      `The history table has ${count} entries, of which the log has ${updated}. Run inkpad rebuild, and move again.`,
    );
  }
  progress.end();
}

function formatPositions(numbers: BigUint64Array): string[] {
  const texts: string[] = [];
  for (let i = 0; i < numbers.length; i += 2) {
    texts.push(formatPosition({ commit: numbers[i] ?? 0n, prepare: numbers[i + 1] ?? 0n }));
  }
  return texts;
}
