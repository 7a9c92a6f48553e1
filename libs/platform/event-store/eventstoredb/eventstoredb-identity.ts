import { Logger } from '@nestjs/common';
import type pg from 'pg';
import { ConfigError } from '#platform/kernel/config-error.js';
import { queryAtStartup } from '#platform/database/connection.js';
import { BEGINNING } from '../port/event-store.js';
import type { EventStoreDbConnection } from './eventstoredb-connection.js';
import { classifyError, toUnavailableError } from './eventstoredb-errors.js';
import type { EventStoreDbReader } from './eventstoredb-reader.js';
import { getPosition, type OwnStreams } from './eventstoredb-streams.js';
import type { ForeignEvents } from './foreign-events.js';
import type { StreamKind } from '../read-models/read-models.js';

const STREAM = 'inkpad_identity';
const IDENTITY_TYPE = 'DatabaseLinked';

type OwnDatabase = {
  database: string;
  isLinked: boolean;
  /** Whether it has no record of any kind. */
  isEmpty: boolean;
};

/**
 * Finds the database that the history on the server belongs to. From then on the log is read from the event that says so:
 * it comes before all others of the history.
 * @throws ConfigError when somebody else uses that stream
 * @throws UnavailableError
 */
async function findLinkedDatabase(
  reader: EventStoreDbReader,
  streams: OwnStreams,
): Promise<string | undefined> {
  const name = streams.getStreamName(STREAM);
  const event = await reader.findFirst(name);
  if (!event) return undefined;
  const { database } = (event.data ?? {}) as { database?: unknown };
  if (event.type !== IDENTITY_TYPE || typeof database !== 'string') {
    throw new ConfigError(
      `The stream ${name} on KurrentDB, which says whose history is there, has an event of somebody else: set EVENT_STORE_STREAM_PREFIX to a prefix that nobody else uses.`,
    );
  }
  streams.historyStart = getPosition(event);
  return database;
}

/**
 * Tells whether one of the streams that a history begins with has an event of ours. The log is not searched for it: with
 * the hundred million events of others that would take hours.
 */
async function hasFirstEvents(reader: EventStoreDbReader, kinds: StreamKind[]): Promise<boolean> {
  const refs = kinds.map(({ name }) => ({ stream: `${name}-1`, revision: 0 }));
  return (await reader.readEvents(refs)).length > 0;
}

/** Tells whether the server has a history under our prefix, of whatever database. */
export async function hasHistory(
  reader: EventStoreDbReader,
  streams: OwnStreams,
  kinds: StreamKind[],
): Promise<boolean> {
  if ((await findLinkedDatabase(reader, streams)) === undefined)
    return hasFirstEvents(reader, kinds);
  return (await reader.readAll(BEGINNING, 1)).length > 0;
}

/**
 * Records which database the history in EventStoreDB belongs to. The first process of a new service writes the
 * database's id into a stream of its own; every process compares the two before it reads or appends anything.
 */
export class EventStoreDbIdentity {
  private readonly log = new Logger('EventStoreDB');

  constructor(
    private readonly pool: pg.Pool,
    private readonly connection: EventStoreDbConnection,
    private readonly reader: EventStoreDbReader,
    private readonly streams: OwnStreams,
    private readonly kinds: StreamKind[],
    private readonly foreignEvents: ForeignEvents,
  ) {}

  /**
   * Compares the ids.
   * @throws ConfigError when they do not belong together
   * @throws UnavailableError
   */
  async check(): Promise<void> {
    const { isLinked } = await this.compare((own) => this.link(own));
    if (isLinked) return;
    await this.pool.query('update es.identity set linked_at = now() where linked_at is null');
  }

  /**
   * Writes our database's id, for a history that is about to be copied into EventStoreDB.
   * @throws ConfigError when another database's history is there
   * @throws UnavailableError
   */
  async claimForOurs(): Promise<void> {
    await this.compare(({ database }) => this.writeIdentity(database));
  }

  private async compare(link: (own: OwnDatabase) => Promise<string>): Promise<OwnDatabase> {
    const own = await this.readOwnDatabase();
    const theirs = (await this.readLinkedDatabase()) ?? (await link(own));
    if (theirs !== own.database) throw this.createForeignHistoryError(own);
    return own;
  }

  /** Writes our database's id to a server that names none, as with a new service. */
  private async link(own: OwnDatabase): Promise<string> {
    if (own.isLinked) throw this.createMissingHistoryError();
    if (await hasFirstEvents(this.reader, this.kinds)) {
      // Another process of ours may have linked them since we looked, and written the first records.
      const theirs = await this.readLinkedDatabase();
      if (theirs === undefined) throw this.createForeignHistoryError(own);
      return theirs;
    }
    if (!own.isEmpty) throw this.createMissingHistoryError();
    const example = this.foreignEvents.findExample();
    if (example !== undefined) {
      this.log.warn(
        `${this.serverName} is also used by somebody else, as the stream ${example} shows: Inkpad passes such streams by and takes other numbers, and a prefix of its own in EVENT_STORE_STREAM_PREFIX would keep them apart.`,
      );
    }
    return this.writeIdentity(own.database);
  }

  private async readOwnDatabase(): Promise<OwnDatabase> {
    const firstKinds = this.kinds.filter(({ beginsHistory }) => beginsHistory);
    const records = firstKinds.map(({ table }) => `exists (select from ${table})`).join(' or ');
    const own = await queryAtStartup<OwnDatabase>(
      this.pool,
      `select database, linked_at is not null as "isLinked", not (${records || 'false'}) as "isEmpty"
       from es.identity`,
    );
    if (own) return own;
    await this.pool.query('insert into es.identity default values on conflict do nothing');
    return this.readOwnDatabase();
  }

  private readLinkedDatabase(): Promise<string | undefined> {
    return findLinkedDatabase(this.reader, this.streams);
  }

  /**
   * Writes an id.
   * @returns the id that is there afterwards: another process may have written its own first
   */
  private async writeIdentity(database: string): Promise<string> {
    try {
      await this.connection.append({
        streamName: this.streams.getStreamName(STREAM),
        expectedRevision: undefined,
        events: [{ id: database, type: IDENTITY_TYPE, data: { database } }],
      });
    } catch (error) {
      if (classifyError(error) !== 'conflict') throw toUnavailableError(error, 'append');
    }
    return (await this.readLinkedDatabase()) ?? database;
  }

  private get serverName(): string {
    return `KurrentDB (streams ${this.streams.getStreamName('*')})`;
  }

  private createMissingHistoryError(): ConfigError {
    return new ConfigError(
      `${this.serverName} lacks the history of this database: set EVENT_STORE_URL and EVENT_STORE_STREAM_PREFIX to those that it began with, or restore the backup of KurrentDB (EventStoreDB) that belongs to it (docs/operating/back-up.md, Restore).`,
    );
  }

  private createForeignHistoryError({ isEmpty }: OwnDatabase): ConfigError {
    return new ConfigError(
      isEmpty
        ? `The database is empty, and ${this.serverName} holds a history already: restore the database that belongs to it (docs/operating/back-up.md, Restore), or give a new service a prefix of its own in EVENT_STORE_STREAM_PREFIX.`
        : `${this.serverName} holds the history of another database: set EVENT_STORE_URL and EVENT_STORE_STREAM_PREFIX to those of this one, or DATABASE_URL to the database of that history.`,
    );
  }
}
