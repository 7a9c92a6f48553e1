import { Injectable, Logger } from '@nestjs/common';
import { Gauge, Registry } from 'prom-client';
import { PlatformConfig } from '#kernel/platform-config.js';
import { getErrorMessage } from '#kernel/errors.js';
import { pause } from '#kernel/pause.js';
import { WakeSignal } from '#kernel/wake-signal.js';
import { startChecks, type CheckedQuery } from './connection-checks.js';
import { createDatabaseClient, type DatabaseClient } from './database-client.js';

const POLL_MS = 1_000;
/** Delay after stepping down, long enough for several polls of the others, so that one of them gets the lock. */
const STEP_DOWN_MS = 5_000;
/** Makes the server notice after about ten seconds that the leader's machine has gone. */
const NOTICE_LOSS = {
  tcp_keepalives_idle: '4',
  tcp_keepalives_interval: '2',
  tcp_keepalives_count: '3',
};

/** Work that only one process does at a time: the holder of an advisory lock. */
export type Leadership = { name: string; lock: number };

/** Elects leaders: the process that holds the lock of a work leads it. All locks of a process are on one connection. */
@Injectable()
export class LeaderLock {
  private readonly leads: Gauge<'work'>;
  private connection: LockConnection | undefined;

  constructor(
    private readonly config: PlatformConfig,
    registry: Registry = new Registry(),
  ) {
    this.leads = new Gauge({
      name: 'inkpad_leads',
      help: 'Whether this process leads, by work that one process does at a time: 1 or 0',
      labelNames: ['work'],
      registers: [registry],
    });
  }

  /**
   * Runs until the signal aborts, whatever happens to the database.
   * @param lead called each time the lock is granted; when it returns by itself, another process gets its turn
   */
  async lead(
    { name, lock }: Leadership,
    signal: AbortSignal,
    lead: (leading: AbortSignal) => Promise<void>,
  ): Promise<void> {
    const log = new Logger(name);
    this.leads.set({ work: name }, 0);
    for (let isUnavailable = false; !signal.aborted;) {
      let wait = POLL_MS;
      try {
        if (await this.campaign({ name, lock }, log, signal, lead)) wait = STEP_DOWN_MS;
        isUnavailable = false;
      } catch (error) {
        if (!isUnavailable)
          log.warn(`could not request the leader lock: ${getErrorMessage(error)}`);
        isUnavailable = true;
      }
      await pause(wait, signal);
    }
  }

  /**
   * Requests the lock until it is granted, and leads until the connection that holds it is lost.
   * @returns whether it stepped down
   */
  private async campaign(
    { name: work, lock }: Leadership,
    log: Logger,
    signal: AbortSignal,
    lead: (leading: AbortSignal) => Promise<void>,
  ): Promise<boolean> {
    const connection = this.getConnection();
    const connected = AbortSignal.any([signal, connection.lost]);
    try {
      if (!(await connection.acquire(lock, connected))) return false;
      this.leads.set({ work }, 1);
      await lead(connected).finally(() => this.leads.set({ work }, 0));
      if (!connected.aborted) {
        log.log('another dispatcher may lead');
        return true;
      }
      if (!signal.aborted)
        log.warn(`leadership was lost: ${getErrorMessage(connection.lost.reason)}`);
      return false;
    } finally {
      await connection.release(lock);
    }
  }

  private getConnection(): LockConnection {
    if (!this.connection || this.connection.lost.aborted)
      this.connection = new LockConnection(this.config.databaseUrl);
    return this.connection;
  }
}

/** A connection that holds locks, from the first that is requested to the last that is released. */
class LockConnection {
  private readonly log = new Logger('leader locks');
  private readonly client: DatabaseClient;
  private readonly ended = new AbortController();
  private readonly requests = new WakeSignal();
  private query: CheckedQuery | undefined;
  /** The locks that are wanted or held, with what grants those that are not held yet. */
  private readonly locks = new Map<number, (() => void) | undefined>();

  constructor(databaseUrl: string) {
    this.client = createDatabaseClient(databaseUrl, 'leader locks', { session: NOTICE_LOSS });
    this.client.on('error', (error) => this.ended.abort(error));
    this.client.on('end', () => this.ended.abort(new Error('the connection was closed')));
    void this.requestLocks();
  }

  /** Aborts when the connection is lost or closed, and all locks with it. */
  get lost(): AbortSignal {
    return this.ended.signal;
  }

  /** Waits for a lock. @returns false when the signal aborts first @throws why the connection was lost before */
  async acquire(lock: number, signal: AbortSignal): Promise<boolean> {
    const isGranted = await new Promise<boolean>((resolve) => {
      this.locks.set(lock, () => resolve(true));
      signal.addEventListener('abort', () => resolve(false), { once: true });
      if (signal.aborted) resolve(false);
      this.requests.wake();
    });
    if (!isGranted) this.lost.throwIfAborted();
    return isGranted;
  }

  /** Releases a lock, or its request. */
  async release(lock: number): Promise<void> {
    const isHeld = this.locks.has(lock) && this.locks.get(lock) === undefined;
    this.locks.delete(lock);
    const isLast = this.locks.size === 0;
    if (isLast) this.ended.abort(new Error('no lock is wanted'));
    try {
      if (isLast) await this.client.end();
      else if (isHeld) await this.unlock(lock);
    } catch (error) {
      this.log.debug(getErrorMessage(error));
    }
  }

  private async requestLocks(): Promise<void> {
    try {
      await this.client.connect();
      this.query = startChecks(this.client);
      while (!this.lost.aborted) {
        const requested = [...this.locks].flatMap(([lock, grant]) => (grant ? lock : []));
        if (requested.length > 0) await this.request(requested);
        await this.requests.wait(POLL_MS, this.lost);
      }
    } catch (error) {
      this.ended.abort(error);
    }
  }

  private async request(locks: number[]): Promise<void> {
    const rows = await this.query?.<{ lock: number }>({
      text: 'select lock from unnest($1::int[]) as l (lock) where pg_try_advisory_lock(lock)',
      values: [locks],
    });
    for (const { lock } of rows ?? []) {
      const grant = this.locks.get(lock);
      this.locks.set(lock, undefined);
      // Nobody wants it any more.
      if (!grant) await this.release(lock);
      else grant();
    }
  }

  private async unlock(lock: number): Promise<void> {
    await this.query?.({ text: 'select pg_advisory_unlock($1)', values: [lock] });
  }
}
