import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { Pool } from 'pg';
import { getErrorMessage } from '#kernel/errors.js';
import { pause } from '#kernel/pause.js';
import { PlatformConfig } from '#kernel/platform-config.js';
import type { ProcessName } from '#kernel/process-name.js';
import { isTransient } from './connection.js';
import { createDatabaseClient, type DatabaseClient } from './database-client.js';
import type { SessionSettings } from './session.js';

/** Between two looks at the other processes. One that is missing in two looks in a row has died. */
const LOOK_INTERVAL_MS = 500;
/** A session whose server has been silent for this long is given up, and no longer trusted. */
const SILENT_MS = 5_000;
const RECONNECT_MS = 250;
/** A server outside PostgreSQL that is away is noticed by every process within this time, by some sooner than by others. */
const CUT_OFF_MS = 20_000;
/** After all sessions have ended at once, running processes have this long to come back before they count as dead. */
const RETURN_SECONDS = 10;

const SESSION: SessionSettings = {
  // The kernel or a proxy keeps the connection of a frozen process open for ever. As long as the longest lease, so that its
  // leases run out instead.
  idle_session_timeout: '60s',
  enable_seqscan: 'off',
  jit: 'off',
};

/**
 * A table whose rows processes lease.
 * @property holder the column with the number of the process, which counts only until the lease ends
 * @property endsAt the column with the end of the lease: moving it to now ends the lease
 */
export type LeasedTable = { name: string; holder: string; endsAt: string };

/** The channel on which it is announced that jobs of a table become due: the table's name and in how many milliseconds. */
const JOBS_CHANNEL = 'inkpad_jobs';

/** Renders SQL that announces that jobs of a table are due now. */
export const announceDue = (table: string): string => `pg_notify('${JOBS_CHANNEL}', '${table} 0')`;

type DueListener = { table: string; listener: (delayMs: number) => void };

/** What a look finds. @property orphans processes that hold leases but no session */
type Look = {
  is_held: boolean;
  peer_count: number;
  has_connected_peer: boolean;
  has_restarted: boolean;
  orphans: number[];
};

/**
 * Holds a session with PostgreSQL for as long as this process lives: an advisory lock with the number of the process,
 * on a connection of its own. When a process dies its connection closes, so the others see at once that its leases will
 * never be used again, and end them. A process that only falls silent keeps its leases until they run out (ADR-0100).
 */
@Injectable()
export class ProcessSession implements OnApplicationShutdown {
  private readonly log = new Logger('process session');
  private readonly tables: LeasedTable[] = [];
  private readonly stopping = new AbortController();
  private readonly listeners: (() => void)[] = [];
  private readonly dueListeners = new Set<DueListener>();
  private running: Promise<void> = Promise.resolve();
  private processNumber: number | undefined;
  private heldAt = Infinity;
  /** When the last look that succeeded was requested. */
  private lookedAt = -Infinity;
  /** When an established session was lost. */
  private lostAt = -Infinity;
  private suspects = new Set<number>();
  private isReleasing = false;
  private otherCount = 0;
  private isConnected: (() => boolean) | undefined;
  /** Since when others of this kind reach a server that this process does not reach. */
  private cutOffAt = Infinity;

  constructor(
    private readonly pool: Pool,
    private readonly config: PlatformConfig,
  ) {}

  /** Names a table whose leases this process may hold, and ends for processes that have died. Call it before `start`. */
  addLeases(table: LeasedTable): void {
    this.tables.push(table);
  }

  /** Names the server outside PostgreSQL that this process needs. Call it before `start`. */
  addServer(isConnected: () => boolean): void {
    this.isConnected = isConnected;
  }

  /** Registers a function that is called each time the session is held again. */
  onHeld(listener: () => void): void {
    this.listeners.push(listener);
  }

  /**
   * Registers a function that is called when jobs of the table become due within seconds, and when that may have been
   * missed. This is only a hint: whoever needs it also polls.
   * @returns how to end it
   */
  onDue(table: string, listener: (delayMs: number) => void): () => void {
    const entry = { table, listener };
    this.dueListeners.add(entry);
    return () => this.dueListeners.delete(entry);
  }

  /** Holds a session until the process ends. Resolves after the first try, whether or not it succeeded. */
  async start(kind: ProcessName): Promise<void> {
    await new Promise<void>((resolve) => {
      this.running = this.run(kind, resolve);
    });
  }

  /** Ends the session once the last request has got its response. */
  async onApplicationShutdown(): Promise<void> {
    this.stopping.abort();
    await this.running;
  }

  /** The number of this process, from its first session on; null before. */
  get number(): number | null {
    return this.processNumber ?? null;
  }

  /** Whether the others see that this process is alive. If not, they may have ended its leases. */
  get isHeld(): boolean {
    return this.heldAt !== Infinity && performance.now() - this.lookedAt < SILENT_MS;
  }

  /** Since when the session has been held without interruption. */
  get heldSince(): number {
    return this.heldAt;
  }

  /** The number that a new lease names; null without a session: such a lease has to run out. */
  get leaseHolder(): number | null {
    return this.isHeld ? this.number : null;
  }

  /** How many other processes of this kind are running. */
  get peerCount(): number {
    return this.otherCount;
  }

  /** Whether this process does not reach its server, and another one of its kind does. */
  get isAloneCutOff(): boolean {
    return performance.now() - this.cutOffAt > CUT_OFF_MS;
  }

  private async run(kind: ProcessName, onFirstTry: () => void): Promise<void> {
    const { signal } = this.stopping;
    for (let isUnavailable = false; !signal.aborted;) {
      try {
        await this.hold(kind, () => {
          isUnavailable = false;
          onFirstTry();
        });
      } catch (error) {
        if (!isUnavailable && !signal.aborted)
          this.log.warn(`the session of this process is lost: ${getErrorMessage(error)}`);
        // The first time at once: usually only the connection was cut, and nobody needs to notice.
        if (isUnavailable) await pause(RECONNECT_MS, signal);
        isUnavailable = true;
        onFirstTry();
      }
    }
  }

  /** Holds one session until it is lost or the process stops. */
  private async hold(kind: ProcessName, onHeld: () => void): Promise<void> {
    const client = createDatabaseClient(this.config.databaseUrl, `session of ${kind}`, {
      session: SESSION,
      query_timeout: SILENT_MS,
    });
    const ended = new AbortController();
    let cause = new Error('the connection was closed');
    client.on('error', (error) => {
      cause = error;
      ended.abort();
    });
    client.on('end', () => ended.abort());
    client.on('notification', ({ payload = '' }) => {
      const [table, delayMs] = payload.split(' ');
      for (const due of this.dueListeners) if (due.table === table) due.listener(Number(delayMs));
    });
    const connected = AbortSignal.any([this.stopping.signal, ended.signal]);
    const look = createLook(this.tables, this.isConnected !== undefined);
    try {
      await client.connect();
      await client.query(`listen ${JOBS_CHANNEL}`);
      await this.acquire(client, kind);
      this.suspects.clear();
      this.lookedAt = performance.now();
      this.heldAt = this.lookedAt;
      for (const listener of this.listeners) listener();
      for (const { listener } of this.dueListeners) listener(0);
      let isShown = false;
      for (let isFirst = true; !connected.aborted; isFirst = false) {
        const isConnected = this.isConnected?.() ?? false;
        if (isConnected !== isShown) {
          await client.query('select es.show_connected($1, $2, $3)', [
            kind,
            this.number,
            isConnected,
          ]);
          isShown = isConnected;
        }
        await this.look(client, { ...look, values: [this.number, kind] });
        if (isFirst) onHeld();
        await pause(LOOK_INTERVAL_MS, connected);
      }
      if (!this.stopping.signal.aborted) throw cause;
    } finally {
      if (this.heldAt !== Infinity) this.lostAt = performance.now();
      this.heldAt = Infinity;
      this.cutOffAt = Infinity;
      await client.end().catch((error: unknown) => this.log.debug(getErrorMessage(error)));
    }
  }

  /**
   * Acquires the lock. The number stays the same over all sessions of a process, and its lock is shared: the server may
   * not have noticed yet that the connection before is closed. A new number is drawn until nobody has it, because a
   * failover to a logical replica, or a restore, may give a number out again.
   */
  private async acquire(client: DatabaseClient, kind: ProcessName): Promise<void> {
    if (this.processNumber !== undefined) {
      await client.query('select es.hold_process($1, $2)', [kind, this.processNumber]);
      return;
    }
    for (;;) {
      const { rows } = await client.query<{ number: number | null }>(
        'select es.draw_process($1) as number',
        [kind],
      );
      const number = rows[0]?.number;
      if (typeof number !== 'number') continue;
      this.processNumber = number;
      return;
    }
  }

  private async look(
    client: DatabaseClient,
    statement: { name: string; text: string; values: unknown[] },
  ): Promise<void> {
    const requestedAt = performance.now();
    const { rows } = await client.query<Look>(statement);
    const [view] = rows;
    if (!view?.is_held) throw new Error('the lock of this process is gone');
    this.lookedAt = requestedAt;
    this.otherCount = view.peer_count;
    const isCutOff = view.has_connected_peer && this.isConnected?.() === false;
    this.cutOffAt = isCutOff ? Math.min(this.cutOffAt, requestedAt) : Infinity;
    const dead = view.orphans.filter((number) => this.suspects.has(number));
    this.suspects = new Set(view.orphans);
    const mayReturn = performance.now() - this.lostAt < RETURN_SECONDS * 1_000;
    if (dead.length === 0 || view.has_restarted || mayReturn || this.isReleasing) return;
    this.isReleasing = true;
    // Beside the looks, which show the others that this process is alive.
    void this.release(dead).finally(() => (this.isReleasing = false));
  }

  private async release(dead: number[]): Promise<void> {
    try {
      let count = 0;
      for (const table of this.tables) {
        const { rows } = await this.pool.query<{ count: number }>({
          ...createRelease(table),
          values: [dead],
        });
        count += rows[0]?.count ?? 0;
      }
      if (count > 0)
        this.log.log(`ended ${count} leases of processes that have died: ${dead.join(', ')}`);
    } catch (error) {
      const message = `leases of dead processes could not be ended: ${getErrorMessage(error)}`;
      if (isTransient(error)) this.log.warn(message);
      else this.log.error(message, error instanceof Error ? error.stack : undefined);
    }
  }
}

/** Reads the locks of all processes once, not for each lease: a dispatcher may hold thousands, and looks twice a second. */
function createLook(tables: LeasedTable[], hasServer: boolean): { name: string; text: string } {
  const holders = tables.map(
    ({ name, holder, endsAt }) =>
      `select ${holder} as holder from ${name} where ${holder} is not null and ${endsAt} > now()`,
  );
  const orphans =
    holders.length === 0
      ? `'{}'::int[]`
      : `array((${holders.join(' union ')}) except select number from es.processes)`;
  return {
    name: 'process_session_look',
    text: `
      select es.is_process_alive($1) as is_held,
        (select count(distinct number)::int from es.processes where kind = $2 and number <> $1) as peer_count,
        ${hasServer ? 'exists (select from es.connected_processes where kind = $2 and number <> $1)' : 'false'} as has_connected_peer,
        now() < pg_postmaster_start_time() + interval '${RETURN_SECONDS} seconds' as has_restarted,
        ${orphans} as orphans`,
  };
}

/** Skips leases that somebody is changing: the next look finds what is left. */
function createRelease({ name, holder, endsAt }: LeasedTable): { name: string; text: string } {
  return {
    name: `${name}_release_dead`,
    text: `
      with released as (
        update ${name} set ${endsAt} = now() where ctid = any (array(
          select ctid from ${name}
          where ${holder} = any (array(select n from unnest($1::int[]) n where not es.is_process_alive(n)))
            and ${endsAt} > now()
          for no key update skip locked))
        returning 1
      )
      select count(*)::int as count, case when count(*) > 0 then ${announceDue(name)} end from released`,
  };
}
