import { Injectable, Logger } from '@nestjs/common';
import { Pool } from 'pg';
import { getErrorMessage } from '#platform/kernel/errors.js';
import type { ProcessName } from '#platform/kernel/process-name.js';
import { isTransient } from './connection.js';
import { ProcessLink, SILENT_MS, type PollTimes } from './process-link.js';

/** A server outside PostgreSQL that is away is noticed by every process within this time, by some sooner than by others. */
const CUT_OFF_MS = 20_000;
/** Between two checks of the other processes. One that is missing in two checks in a row has died. */
const CHECK_INTERVAL_MS = 400;
/**
 * After all sessions have ended at once, running processes have this long to come back before they count as dead. By the age
 * of the oldest session: a standby that was promoted, unlike one that was restarted, has run for long.
 */
const RETURN_SECONDS = 10;

/**
 * A table whose rows processes lease.
 * @property holder the column with the number of the process, which counts only until the lease ends
 * @property endsAt the column with the end of the lease: moving it to now ends the lease
 */
export type LeasedTable = { name: string; holder: string; endsAt: string };

/**
 * The channel on which it is announced that jobs become due: the name of their table, with their partition where the table
 * announces it, and in how many milliseconds.
 */
const JOBS_CHANNEL = 'inkpad_jobs';

/** Renders SQL that announces that jobs of a table are due now. */
export const announceDue = (table: string): string => `pg_notify('${JOBS_CHANNEL}', '${table} 0')`;

type DueListener = { jobs: string; listener: (delayMs: number) => void };
type Connection = NonNullable<ProcessLink['current']>;

/** What a poll reads of the processes. @property are_new all sessions are; orphans processes that hold leases but no session */
type ProcessRow = {
  is_held: boolean;
  peer_count: number;
  has_connected_peer: boolean;
  are_new: boolean;
  orphans: number[];
};

/**
 * Holds a session with PostgreSQL for as long as this process lives: an advisory lock with the number of the process,
 * on its link. When a process dies its connection closes, so the others see at once that its leases will never be used
 * again, and end them: it is missing in two checks in a row (ADR-0100).
 */
@Injectable()
export class ProcessSession {
  private readonly log = new Logger('process session');
  private readonly tables: LeasedTable[] = [];
  private readonly listeners: (() => void)[] = [];
  private readonly peerListeners: ((peerCount: number) => void)[] = [];
  private readonly dueListeners = new Set<DueListener>();
  private processNumber: number | undefined;
  private heldAt = Infinity;
  /** When the last poll that succeeded was sent. */
  private polledAt = -Infinity;
  /** When the poll of the last check of the other processes was sent. */
  private checkedAt = -Infinity;
  private suspects = new Set<number>();
  private isReleasing = false;
  private otherCount = 0;
  private isConnected: (() => boolean) | undefined;
  /** Whether the others see that this process reaches that server. */
  private isShown = false;
  /** Since when others of this kind reach a server that this process does not reach. */
  private cutOffAt = Infinity;

  constructor(
    private readonly pool: Pool,
    private readonly link: ProcessLink,
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

  /** Registers a function that is called when the number of the other processes of this kind has changed. */
  onPeers(listener: (peerCount: number) => void): void {
    this.peerListeners.push(listener);
  }

  /**
   * Registers a function that is called when jobs become due within seconds, and when that may have been missed. This is only
   * a hint: whoever needs it also polls.
   * @param jobs their table, or a partition of it, as in `table:value:value`
   * @returns how to end it
   */
  onDue(jobs: string, listener: (delayMs: number) => void): () => void {
    const entry = { jobs, listener };
    this.dueListeners.add(entry);
    return () => this.dueListeners.delete(entry);
  }

  /** Holds a session until the process ends. Resolves after the first try, whether or not it succeeded. */
  async start(kind: ProcessName): Promise<void> {
    const { link } = this;
    link.onLost(() => this.lose());
    await link.onOpen((connection) => this.hold(connection, kind));
    link.listen(
      JOBS_CHANNEL,
      (payload) => {
        const [jobs = '', delayMs] = payload.split(' ');
        this.announce(Number(delayMs), jobs);
      },
      () => this.announce(0),
    );
    const hasServer = this.isConnected !== undefined;
    link.join<ProcessRow>({
      ...createPoll(this.tables, hasServer),
      getValues: () => [this.processNumber, kind],
      receive: (row, times) => this.receive(row, times),
    });
    if (hasServer) link.onPoll(() => void this.showConnected(kind));
    await link.poll();
  }

  /** The number of this process, from its first session on; null before. */
  get number(): number | null {
    return this.processNumber ?? null;
  }

  /** Whether the others see that this process is alive. If not, they may have ended its leases. */
  get isHeld(): boolean {
    return this.heldAt !== Infinity && performance.now() - this.polledAt < SILENT_MS;
  }

  /** Since when the session has been held without interruption. */
  get heldSince(): number {
    return this.heldAt;
  }

  /** Tells whether the session has been held since then, so that the leases of that time are this process's. */
  isHeldSince(time: number): boolean {
    return this.isHeld && this.heldAt <= time;
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

  private lose(): void {
    this.heldAt = Infinity;
    this.cutOffAt = Infinity;
  }

  /** @param announced a table or a partition of it; left out: any may have become due */
  private announce(delayMs: number, announced = ''): void {
    for (const { jobs, listener } of this.dueListeners) {
      const names = [`${jobs}:`, `${announced}:`] as const;
      if (announced === '' || names[0].startsWith(names[1]) || names[1].startsWith(names[0])) {
        listener(delayMs);
      }
    }
  }

  private async hold(connection: Connection, kind: ProcessName): Promise<void> {
    await this.acquire(connection, kind);
    this.suspects.clear();
    this.isShown = false;
    this.polledAt = performance.now();
    this.heldAt = this.polledAt;
    for (const listener of this.listeners) listener();
  }

  /**
   * Acquires the lock. The number stays the same over all sessions of a process, and its lock is shared: the server may
   * not have noticed yet that the connection before is closed. A new number is drawn until nobody has it, because a
   * failover to a logical replica, or a restore, may give a number out again.
   */
  private async acquire(connection: Connection, kind: ProcessName): Promise<void> {
    if (this.processNumber !== undefined) {
      const values = [kind, this.processNumber];
      await connection.query({ text: 'select es.hold_process($1, $2)', values });
      return;
    }
    for (;;) {
      const [row] = await connection.query<{ number: number | null }>({
        text: 'select es.draw_process($1) as number',
        values: [kind],
      });
      if (typeof row?.number !== 'number') continue;
      this.processNumber = row.number;
      return;
    }
  }

  /** Shows the others whether this process reaches its server. */
  private async showConnected(kind: ProcessName): Promise<void> {
    const connection = this.link.current;
    const isConnected = this.isConnected?.() ?? false;
    if (!connection || isConnected === this.isShown) return;
    this.isShown = isConnected;
    const text = 'select es.show_connected($1, $2, $3)';
    const values = [kind, this.processNumber, isConnected];
    // After a failure the next poll is followed by another try.
    await connection.query({ text, values }).catch(() => (this.isShown = !isConnected));
  }

  private receive(row: ProcessRow, { sentAt }: PollTimes): void {
    if (!row.is_held) throw new Error('the lock of this process is gone');
    this.polledAt = sentAt;
    if (row.peer_count !== this.otherCount) {
      this.otherCount = row.peer_count;
      for (const listener of this.peerListeners) listener(row.peer_count);
    }
    const isCutOff = row.has_connected_peer && this.isConnected?.() === false;
    this.cutOffAt = isCutOff ? Math.min(this.cutOffAt, sentAt) : Infinity;
    // A process that has just lost its connection needs a moment for the next one, and polls may come at any time.
    if (sentAt - this.checkedAt < CHECK_INTERVAL_MS) return;
    this.checkedAt = sentAt;
    const dead = row.orphans.filter((number) => this.suspects.has(number));
    this.suspects = new Set(row.orphans);
    if (dead.length === 0 || row.are_new || this.isReleasing) return;
    this.isReleasing = true;
    // Beside the polls, which show the others that this process is alive.
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

/** Reads the locks of all processes once, not for each lease: a dispatcher may hold thousands. */
function createPoll(
  tables: LeasedTable[],
  hasServer: boolean,
): { source: string; columns: string } {
  const holders = tables.map(
    ({ name, holder, endsAt }) =>
      `select ${holder} as holder from ${name} where ${holder} is not null and ${endsAt} > now()`,
  );
  const orphans =
    holders.length === 0
      ? `'{}'::int[]`
      : `array((${holders.join(' union ')}) except select number from alive)`;
  return {
    source: 'alive as materialized (select kind, number, pid from es.processes)',
    columns: `
        exists (select from alive where number = $1::int) as is_held,
        (select count(distinct number)::int from alive where kind = $2::text and number <> $1) as peer_count,
        ${hasServer ? 'exists (select from es.connected_processes where kind = $2 and number <> $1)' : 'false'} as has_connected_peer,
        not exists (select from alive join pg_stat_activity a using (pid)
          where a.backend_start < now() - interval '${RETURN_SECONDS} seconds') as are_new,
        ${orphans} as orphans`,
  };
}

/** Skips leases that somebody is changing: the next check finds what is left. */
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
