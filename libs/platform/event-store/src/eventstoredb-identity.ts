import { jsonEvent, NO_STREAM } from '@eventstore/db-client';
import type pg from 'pg';
import { ConfigError } from '#kernel/config.js';
import { askAtStart } from '#database/connection.js';
import { BEGINNING } from './event-store.js';
import type { EventStoreDbConnection } from './eventstoredb-connection.js';
import { faultOf, unavailable } from './eventstoredb-faults.js';
import type { EventStoreDbReader } from './eventstoredb-reader.js';
import type { OwnStreams } from './eventstoredb-streams.js';

const STREAM = 'inkpad_identity';

type Own = {
  database: string;
  linked: boolean;
  /** The oldest store, or null when there is none. */
  id: number | null;
  created: string | null;
};

const OWN = `
  select i.database, i.linked_at is not null as linked, oldest.id, oldest.created
  from es.identity i
  left join lateral (
    select id, state ->> 'createdAt' as created from accounts order by id limit 1
  ) oldest on true`;

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
    if (own.linked || (own.id !== null && !held)) throw this.lacksHistory();
    if (held && !(await this.holdsOldest(own))) throw this.foreign(own);
    return this.write(own.database);
  }

  private async own(): Promise<Own> {
    const known = await askAtStart<Own>(this.pool, OWN);
    if (known) return known;
    await this.pool.query('insert into es.identity default values on conflict do nothing');
    return this.own();
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

  /** Whether the first event of the database's oldest store is there. */
  private async holdsOldest({ id, created }: Own): Promise<boolean> {
    if (id === null) return false;
    for await (const { meta } of this.reader.readStream(`account-${id}`, { to: 0 })) {
      return meta.recordedAt === created;
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

  private foreign({ id }: Own): ConfigError {
    return new ConfigError(
      id === null
        ? `The database is empty, and ${this.there} holds a history already: restore the database that belongs to it (docs/operating.md, Restore), or give a new service a prefix of its own in EVENT_STORE_STREAM_PREFIX.`
        : `${this.there} holds the history of another database: set EVENT_STORE_URL and EVENT_STORE_STREAM_PREFIX to those of this one, or DATABASE_URL to the database of that history.`,
    );
  }
}
