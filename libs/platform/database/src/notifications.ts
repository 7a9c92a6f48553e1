import { Logger } from '@nestjs/common';
import pg from 'pg';
import { getErrorMessage } from '#kernel/errors.js';
import { LISTENING_INTERVAL_MS, startChecks, type CheckedQuery } from './connection-checks.js';
import {
  createDatabaseClient,
  type DatabaseClient,
  type LimitedStatement,
} from './database-client.js';

const RECONNECT_MS = 500;

/**
 * Listens on a dedicated connection (LISTEN). A notification is only a hint: everything must also be found by
 * polling. `onLost` is called when some may have been missed.
 */
export class Notifications {
  private readonly log = new Logger(Notifications.name);
  private client: DatabaseClient | undefined;
  /** Sends a query on the connection; undefined while it does not listen. */
  private sendQuery: CheckedQuery | undefined;
  private retry: NodeJS.Timeout | undefined;
  private isClosed = false;

  constructor(
    private readonly databaseUrl: string,
    private readonly channel: string,
    private readonly onNotify: (payload: string) => void,
    private readonly onLost: () => void = () => undefined,
  ) {}

  async listen(): Promise<void> {
    const client = createDatabaseClient(this.databaseUrl, `listen ${this.channel}`);
    this.client = client;
    client.on('error', (error) => this.reconnect(client, error));
    client.on('end', () => this.reconnect(client));
    client.on('notification', (message) => this.onNotify(message.payload ?? ''));
    try {
      await client.connect();
      await client.query(`listen ${pg.escapeIdentifier(this.channel)}`);
      const sendQuery = startChecks(client, LISTENING_INTERVAL_MS);
      // It may have been lost already.
      if (client === this.client) this.sendQuery = sendQuery;
      this.onLost();
    } catch (error) {
      this.reconnect(client, error);
    }
  }

  /**
   * Runs a query on the same connection, so that a poll depends on neither the pool nor its load.
   * @returns undefined while there is no connection
   */
  async query<R extends pg.QueryResultRow>(statement: LimitedStatement): Promise<R[] | undefined> {
    return this.sendQuery?.<R>(statement);
  }

  async close(): Promise<void> {
    this.isClosed = true;
    clearTimeout(this.retry);
    await this.client?.end();
  }

  private reconnect(client: DatabaseClient, error?: unknown): void {
    if (this.isClosed || client !== this.client) return;
    this.client = undefined;
    this.sendQuery = undefined;
    if (error instanceof Error) this.log.warn(`${this.channel}: ${error.message}; reconnecting`);
    this.onLost();
    // Its listeners stay: an error that comes late must not end the process.
    client.end().catch((late: unknown) => this.log.debug(getErrorMessage(late)));
    this.retry = setTimeout(() => void this.listen(), RECONNECT_MS);
  }
}
