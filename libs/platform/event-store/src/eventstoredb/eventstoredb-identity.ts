import { jsonEvent, NO_STREAM } from '@eventstore/db-client';
import type pg from 'pg';
import { ConfigError } from '#kernel/config-error.js';
import { askAtStart } from '#database/connection.js';
import { BEGINNING } from '../port/event-store.js';
import type { EventStoreDbConnection } from './eventstoredb-connection.js';
import { faultOf, unavailable } from './eventstoredb-faults.js';
import type { EventStoreDbReader } from './eventstoredb-reader.js';
import type { OwnStreams } from './eventstoredb-streams.js';
import type { StreamKind } from '../read-models/read-models.js';

const STREAM = 'inkpad_identity';

type Own = {
  database: string;
  linked: boolean;
  /** Has no record of any kind. */
  isEmpty: boolean;
};

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

  /** Nothing there names a database, as with a new service. */
  private async link(own: Own): Promise<string> {
    const held = (await this.reader.readAll(BEGINNING, 1)).length > 0;
    if (own.linked || (!own.isEmpty && !held)) throw this.lacksHistory();
    if (held) throw this.foreign(own);
    return this.write(own.database);
  }

  private async own(): Promise<Own> {
    const first = this.kinds.filter(({ beginsHistory }) => beginsHistory);
    const records = first.map(({ table }) => `exists (select from ${table})`).join(' or ');
    const own = await askAtStart<Own>(
      this.pool,
      `select database, linked_at is not null as linked, not (${records || 'false'}) as "isEmpty"
       from es.identity`,
    );
    if (own) return own;
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

  private get there(): string {
    return `EventStoreDB (streams ${this.streams.nameOf('*')})`;
  }

  private lacksHistory(): ConfigError {
    return new ConfigError(
      `${this.there} lacks the history of this database: set EVENT_STORE_URL and EVENT_STORE_STREAM_PREFIX to those that it began with, or restore the backup of EventStoreDB that belongs to it (docs/operating.md, Restore).`,
    );
  }

  private foreign({ isEmpty }: Own): ConfigError {
    return new ConfigError(
      isEmpty
        ? `The database is empty, and ${this.there} holds a history already: restore the database that belongs to it (docs/operating.md, Restore), or give a new service a prefix of its own in EVENT_STORE_STREAM_PREFIX.`
        : `${this.there} holds the history of another database: set EVENT_STORE_URL and EVENT_STORE_STREAM_PREFIX to those of this one, or DATABASE_URL to the database of that history.`,
    );
  }
}
