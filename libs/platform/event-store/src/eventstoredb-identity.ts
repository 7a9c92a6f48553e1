import { jsonEvent, NO_STREAM } from '@eventstore/db-client';
import type pg from 'pg';
import { ConfigError } from '#kernel/config.js';
import { askAtStart } from '#database/connection.js';
import { BEGINNING } from './event-store.js';
import type { EventStoreDbConnection } from './eventstoredb-connection.js';
import { faultOf, unavailable } from './eventstoredb-faults.js';
import type { EventStoreDbReader } from './eventstoredb-reader.js';
import type { OwnStreams } from './eventstoredb-streams.js';
import type { StreamKind } from './rows.js';

const STREAM = 'inkpad_identity';

type Own = {
  database: string;
  linked: boolean;
  /** The oldest record, or null when there is none. */
  stream: string | null;
  recorded: string | null;
};

const OWN = 'select database, linked_at is not null as linked from es.identity';

/** Finds the oldest record of a kind with which every history begins. */
const OLDEST = (kind: string, table: string, firstRecordedAt: string) => `
  select '${kind}-' || r.id as stream, ${firstRecordedAt} as recorded
  from ${table} r order by r.id limit 1`;

/**
 * Which database the history in EventStoreDB belongs to. The first process of a new service writes the database's id
 * into a stream of its own; every process compares the two before it reads or appends anything.
 */
export class EventStoreDbIdentity {
  constructor(
    private readonly pool: pg.Pool,
    private readonly connection: EventStoreDbConnection,
    private readonly reader: EventStoreDbReader,
    private readonly streams: OwnStreams,
    private readonly kinds: StreamKind[],
  ) {}

  /** @throws ConfigError when the two do not belong together. @throws UnavailableError */
  async check(): Promise<void> {
    const own = await this.own();
    const theirs = (await this.theirs()) ?? (await this.link(own));
    if (theirs !== own.database) throw this.foreign(own);
    if (own.linked) return;
    await this.pool.query('update es.identity set linked_at = now() where linked_at is null');
  }

  /**
   * For a history that is about to be copied into EventStoreDB.
   * @throws ConfigError when another database's history is there. @throws UnavailableError
   */
  async take(): Promise<void> {
    const own = await this.own();
    const theirs = (await this.theirs()) ?? (await this.write(own.database));
    if (theirs !== own.database) throw this.foreign(own);
  }

  /** Nothing there names a database, as with a new service or a history from before databases had ids. */
  private async link(own: Own): Promise<string> {
    const held = (await this.reader.readAll(BEGINNING, 1)).length > 0;
    if (own.linked || (own.stream !== null && !held)) throw this.lacksHistory();
    if (held && !(await this.holdsOldest(own))) throw this.foreign(own);
    return this.write(own.database);
  }

  private async own(): Promise<Own> {
    const known = await askAtStart<Pick<Own, 'database' | 'linked'>>(this.pool, OWN);
    if (known) return { ...known, ...(await this.oldest()) };
    await this.pool.query('insert into es.identity default values on conflict do nothing');
    return this.own();
  }

  private async oldest(): Promise<Pick<Own, 'stream' | 'recorded'>> {
    for (const { aggregate, table, firstRecordedAt } of this.kinds) {
      if (firstRecordedAt === undefined) continue;
      const oldest = await askAtStart<{ stream: string; recorded: string }>(
        this.pool,
        OLDEST(aggregate.name, table, firstRecordedAt),
      );
      if (oldest) return oldest;
    }
    return { stream: null, recorded: null };
  }

  private async theirs(): Promise<string | undefined> {
    const event = await this.reader.firstOf(this.streams.nameOf(STREAM));
    return event && (event.data as { database: string }).database;
  }

  /** @returns the id that is there afterwards: another process may have written its own first */
  private async write(database: string): Promise<string> {
    const event = jsonEvent({ id: database, type: 'DatabaseLinked', data: { database } });
    try {
      await this.connection.ask((client) =>
        client.appendToStream(this.streams.nameOf(STREAM), event, { expectedRevision: NO_STREAM }),
      );
    } catch (error) {
      if (faultOf(error) !== 'conflict') throw unavailable(error, 'append');
    }
    return (await this.theirs()) ?? database;
  }

  /** Whether the first event of the database's oldest record is there. */
  private async holdsOldest({ stream, recorded }: Own): Promise<boolean> {
    if (stream === null) return false;
    for await (const { meta } of this.reader.readStream(stream, { to: 0 })) {
      return meta.recordedAt === recorded;
    }
    return false;
  }

  private get there(): string {
    return `EventStoreDB (streams ${this.streams.nameOf('*')})`;
  }

  private lacksHistory(): ConfigError {
    return new ConfigError(
      `${this.there} lacks the history of this database: set EVENT_STORE_URL and EVENT_STORE_STREAM_PREFIX to those that it began with, or restore the backup of EventStoreDB that belongs to it (docs/operating.md, Restore).`,
    );
  }

  private foreign({ stream }: Own): ConfigError {
    return new ConfigError(
      stream === null
        ? `The database is empty, and ${this.there} holds a history already: restore the database that belongs to it (docs/operating.md, Restore), or give a new service a prefix of its own in EVENT_STORE_STREAM_PREFIX.`
        : `${this.there} holds the history of another database: set EVENT_STORE_URL and EVENT_STORE_STREAM_PREFIX to those of this one, or DATABASE_URL to the database of that history.`,
    );
  }
}
