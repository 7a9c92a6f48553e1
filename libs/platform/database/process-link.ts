import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import pg from 'pg';
import { getErrorMessage } from '#platform/kernel/errors.js';
import { FailureLog } from '#platform/kernel/failure-log.js';
import { pause } from '#platform/kernel/pause.js';
import { PlatformConfig } from '#platform/kernel/platform-config.js';
import { WakeSignal } from '#platform/kernel/wake-signal.js';
import { isConnectionLoss } from './connection.js';
import {
  createDatabaseClient,
  StandbyError,
  type DatabaseClient,
  type LimitedStatement,
} from './database-client.js';
import { createApplicationName } from './data-source.js';
import type { SessionSettings } from './session.js';

const POLL_INTERVAL_MS = 500;
/** A server that has been silent for this long is left. */
export const SILENT_MS = 5_000;
const RECONNECT_MS = 250;
/** A connection that is lost sooner may be lost by what the process does on it: the next one is opened after a delay. */
const STABLE_MS = 5_000;

const SESSION: SessionSettings = {
  // The kernel or a proxy keeps the connection of a frozen process open for ever, and its locks with it.
  idle_session_timeout: '20s',
  // The server notices after about ten seconds that the machine of the process has gone.
  tcp_keepalives_idle: '4',
  tcp_keepalives_interval: '2',
  tcp_keepalives_count: '3',
  // Shorter than our own limit: a server that still waits for a lock would keep those of a connection that was closed.
  statement_timeout: '4s',
  // Lock requests and heartbeats wait behind a poll that waits for a lock.
  lock_timeout: '500ms',
  enable_seqscan: 'off',
  jit: 'off',
  // Locks and polls must not stand still behind a heartbeat that waits for a synchronous standby.
  synchronous_commit: 'local',
  plan_cache_mode: 'force_generic_plan',
};

/** When a poll was sent and its result arrived, by `performance.now()`. */
export type PollTimes = { sentAt: number; receivedAt: number };

/**
 * What one part of the process reads in each poll.
 * @property source a `with` query that its columns read
 * @property columns expressions with names of their own, whose $1 and so on are `getValues`
 * @property receive gets the row; an error ends the connection
 */
export type PollPart<Row> = {
  source?: string;
  columns: string;
  getValues?: () => unknown[];
  receive: (row: Row, times: PollTimes) => void;
};

type AnyPart = PollPart<Record<string, unknown>>;
type Listener = { channel: string; onNotify: (payload: string) => void; onMissed: () => void };

/** One connection of the link, which runs one statement at a time: the driver's next major version refuses a second one. */
class LinkConnection {
  private readonly client: DatabaseClient;
  private readonly ended = new AbortController();
  private lastQuery: Promise<unknown> = Promise.resolve();

  constructor(
    config: PlatformConfig,
    application: string,
    onNotify: (channel: string, payload: string) => void,
  ) {
    this.client = createDatabaseClient(config.databaseUrl, application, {
      application_name: createApplicationName(config, `${application} link`),
      session: SESSION,
      query_timeout: SILENT_MS,
    });
    this.client.on('error', (error) => this.ended.abort(error));
    this.client.on('end', () => this.ended.abort(new Error('the connection was closed')));
    this.client.on('notification', ({ channel, payload = '' }) => onNotify(channel, payload));
  }

  /** Aborts with the cause when the connection is lost, and with it the locks and everything else of its session. */
  get lost(): AbortSignal {
    return this.ended.signal;
  }

  async connect(): Promise<void> {
    await this.client.connect();
  }

  async query<R extends pg.QueryResultRow>(statement: LimitedStatement): Promise<R[]> {
    const result = this.lastQuery.then(() => this.client.query<R>(statement));
    this.lastQuery = result.catch(() => undefined);
    return (await result).rows;
  }

  /** Closes the connection. */
  async end(cause: unknown): Promise<void> {
    this.ended.abort(cause);
    // It may be closed already.
    await this.client.end().catch(() => undefined);
  }
}

/**
 * Links the process with the database by one connection of its own, outside the pool and its load (ADR-0100). On it the
 * process holds its locks and listens to all channels. A poll, twice a second, reads in one statement what the parts of
 * the process have to notice.
 */
@Injectable()
export class ProcessLink implements OnApplicationShutdown {
  private readonly log = new Logger('database link');
  private readonly stopping = new AbortController();
  private readonly parts: AnyPart[] = [];
  private readonly listeners = new Set<Listener>();
  private readonly openListeners: ((connection: LinkConnection) => Promise<void>)[] = [];
  private readonly lossListeners: ((cause: unknown) => void)[] = [];
  private readonly pollListeners: (() => void)[] = [];
  private readonly requests = new WakeSignal();
  private waiters: (() => void)[] = [];
  private running: Promise<void> | undefined;
  private connection: LinkConnection | undefined;
  private statement = { partCount: -1, text: '' };
  private readonly polls = new FailureLog(this.log);

  /** @param application as in the names of the pool's connections */
  constructor(
    private readonly config: PlatformConfig,
    private readonly application: string,
  ) {}

  /** The connection; undefined while there is none. */
  get current(): LinkConnection | undefined {
    return this.connection;
  }

  /** Adds a part to the polls from the next one on. */
  join<Row>(part: PollPart<Row>): void {
    this.parts.push(part as unknown as AnyPart);
  }

  /**
   * Listens to a channel. A notification is only a hint: everything must also be found by polling.
   * @param onMissed called whenever some may have been missed: on each new connection
   * @returns how to end it
   */
  listen(
    channel: string,
    onNotify: (payload: string) => void,
    onMissed: () => void = () => undefined,
  ): () => void {
    const listener = { channel, onNotify, onMissed };
    this.listeners.add(listener);
    if (this.connection) void this.listenOn(this.connection, [listener]);
    else this.start();
    return () => {
      this.listeners.delete(listener);
      if ([...this.listeners].some((otherListener) => otherListener.channel === channel)) return;
      const text = `unlisten ${pg.escapeIdentifier(channel)}`;
      // What it still notifies of reaches nobody.
      void this.connection?.query({ text }).catch(() => undefined);
    };
  }

  /** Does something on each connection before its first poll; at once on one that is open. An error ends the connection. */
  async onOpen(open: (connection: LinkConnection) => Promise<void>): Promise<void> {
    this.openListeners.push(open);
    const { connection } = this;
    if (connection) await open(connection).catch((error: unknown) => connection.end(error));
  }

  /** Registers a function that is called when the connection is lost, and when none could be opened. */
  onLost(listener: (cause: unknown) => void): void {
    this.lossListeners.push(listener);
  }

  /**
   * Registers a function that is called after each poll, also after one that the server has refused: for statements that
   * must not depend on the tables of others.
   */
  onPoll(listener: () => void): void {
    this.pollListeners.push(listener);
  }

  /** Polls now. Returns when that has succeeded or failed; later polls follow until the process ends. */
  async poll(): Promise<void> {
    if (this.stopping.signal.aborted) return;
    await new Promise<void>((resolve) => {
      this.waiters.push(resolve);
      this.requests.wake();
      this.start();
    });
  }

  /** Ends the link once the last request has got its response. */
  async onApplicationShutdown(): Promise<void> {
    this.stopping.abort();
    await this.running;
  }

  private start(): void {
    this.running ??= this.run();
  }

  private async run(): Promise<void> {
    const { signal } = this.stopping;
    for (let isUnavailable = false; !signal.aborted;) {
      try {
        await this.hold(() => (isUnavailable = false));
      } catch (error) {
        if (!isUnavailable && !signal.aborted)
          this.log.warn(`the connection is lost: ${getErrorMessage(error)}`);
        this.endWaits(this.waiters.splice(0));
        // The first time at once: usually only the connection was cut, and nobody needs to notice.
        if (isUnavailable) await pause(RECONNECT_MS, signal);
        isUnavailable = true;
      }
    }
    this.endWaits(this.waiters.splice(0));
  }

  /** Holds a connection until it is lost or the process stops. */
  private async hold(onStable: () => void): Promise<void> {
    const connection = new LinkConnection(this.config, this.application, (channel, payload) => {
      for (const listener of this.listeners)
        if (listener.channel === channel) listener.onNotify(payload);
    });
    const connected = AbortSignal.any([this.stopping.signal, connection.lost]);
    let cause: unknown = new Error('the process stops');
    try {
      await connection.connect();
      for (const open of this.openListeners) await open(connection);
      this.connection = connection;
      await this.listenOn(connection, [...this.listeners]);
      const openedAt = performance.now();
      while (!connected.aborted) {
        const sentAt = performance.now();
        await this.pollOn(connection);
        const now = performance.now();
        if (now - openedAt > STABLE_MS) onStable();
        await this.requests.wait(Math.max(POLL_INTERVAL_MS - (now - sentAt), 0), connected);
      }
      if (!this.stopping.signal.aborted) throw connection.lost.reason;
    } catch (error) {
      cause = error;
      throw error;
    } finally {
      this.connection = undefined;
      const ended = connection.end(cause);
      for (const listener of this.lossListeners) listener(cause);
      await ended;
    }
  }

  private async listenOn(connection: LinkConnection, listeners: Listener[]): Promise<void> {
    const channels = new Set(listeners.map(({ channel }) => pg.escapeIdentifier(channel)));
    const text = [...channels].map((channel) => `listen ${channel}`).join(';');
    try {
      if (channels.size > 0) await connection.query({ text });
      for (const { onMissed } of listeners) onMissed();
    } catch (error) {
      await connection.end(error);
    }
  }

  private async pollOn(connection: LinkConnection): Promise<void> {
    const waiters = this.waiters.splice(0);
    const parts = [...this.parts];
    const sentAt = performance.now();
    try {
      const [row] = await connection.query<{ is_standby: boolean }>({
        name: `process_link_poll_${parts.length}`,
        text: this.renderPoll(parts),
        values: parts.flatMap((part) => part.getValues?.() ?? []),
      });
      // Nothing that a standby says counts, since it may be behind (ADR-0099).
      if (!row || row.is_standby) throw new StandbyError();
      const times = { sentAt, receivedAt: performance.now() };
      for (const part of parts) part.receive(row, times);
      this.polls.succeed();
    } catch (error) {
      if (!(error instanceof pg.DatabaseError) || isConnectionLoss(error)) throw error;
      // The session goes on with its locks.
      this.polls.fail(`a poll has failed: ${getErrorMessage(error)}`);
    } finally {
      this.endWaits(waiters);
    }
    for (const listener of this.pollListeners) listener();
  }

  /** Renders the statement of all parts, with their parameters in the order of the parts. */
  private renderPoll(parts: AnyPart[]): string {
    if (this.statement.partCount === parts.length) return this.statement.text;
    let valueCount = 0;
    const sources: string[] = [];
    const columns = ['pg_is_in_recovery() as is_standby'];
    for (const part of parts) {
      const before = valueCount;
      const number = (sql: string) =>
        sql.replaceAll(/\$(\d+)/g, (_match, place) => `$${before + Number(place)}`);
      if (part.source !== undefined) sources.push(number(part.source));
      columns.push(number(part.columns));
      valueCount += part.getValues?.().length ?? 0;
    }
    const text = `${sources.length > 0 ? `with ${sources.join(', ')} ` : ''}select ${columns.join(', ')}`;
    this.statement = { partCount: parts.length, text };
    return text;
  }

  private endWaits(waiters: (() => void)[]): void {
    for (const end of waiters) end();
  }
}
