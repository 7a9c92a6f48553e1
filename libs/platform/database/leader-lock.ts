import { Injectable, Logger } from '@nestjs/common';
import { Gauge, Registry } from 'prom-client';
import { getErrorMessage } from '#platform/kernel/errors.js';
import { FailureLog } from '#platform/kernel/failure-log.js';
import { pause } from '#platform/kernel/pause.js';
import { ProcessLink } from './process-link.js';

/** Delay after a failure of the work. */
const RETRY_MS = 1_000;
/** Delay after stepping down, long enough for several requests of the others, so that one of them gets the lock. */
const STEP_DOWN_MS = 5_000;

/** Work that only one process does at a time: the holder of an advisory lock. */
export type Leadership = { name: string; lock: number };

type Connection = NonNullable<ProcessLink['current']>;

/** Elects leaders: the process whose link holds the lock of a work leads it. */
@Injectable()
export class LeaderLock {
  private readonly leads: Gauge<'work'>;
  /** What grants the locks that are requested and not held yet. */
  private readonly requests = new Map<number, (holder: Connection) => void>();
  private isRequesting = false;
  private readonly failures = new FailureLog(new Logger('leader locks'));

  constructor(
    private readonly link: ProcessLink,
    registry: Registry = new Registry(),
  ) {
    this.leads = new Gauge({
      name: 'inkpad_leads',
      help: 'Whether this process leads, by work that one process does at a time: 1 or 0',
      labelNames: ['work'],
      registers: [registry],
    });
    link.onPoll(() => void this.request());
  }

  /**
   * Runs until the signal aborts, whatever happens to the database.
   * @param lead called each time the lock is granted; when it returns by itself, another process gets its turn
   */
  async lead(
    { name: work, lock }: Leadership,
    signal: AbortSignal,
    lead: (leading: AbortSignal) => Promise<void>,
  ): Promise<void> {
    const log = new Logger(work);
    this.leads.set({ work }, 0);
    for (;;) {
      const holder = await this.acquire(lock, signal);
      if (!holder) return;
      if (holder.lost.aborted) continue;
      // Aborts also when the work ends by an error: a part of it may still be running.
      const over = new AbortController();
      const leading = AbortSignal.any([signal, holder.lost, over.signal]);
      let delayMs = 0;
      this.leads.set({ work }, 1);
      try {
        await lead(leading);
        if (!leading.aborted) {
          log.log('another dispatcher may lead');
          delayMs = STEP_DOWN_MS;
        } else if (!signal.aborted)
          log.warn(`leadership was lost: ${getErrorMessage(holder.lost.reason)}`);
      } catch (error) {
        log.warn(`leadership has ended: ${getErrorMessage(error)}`);
        delayMs = RETRY_MS;
      } finally {
        over.abort();
      }
      this.leads.set({ work }, 0);
      await this.release([lock], holder);
      if (delayMs > 0) await pause(delayMs, signal);
    }
  }

  /** Waits for a lock. @returns the connection that holds it; undefined when the signal aborts first */
  private async acquire(lock: number, signal: AbortSignal): Promise<Connection | undefined> {
    if (signal.aborted) return undefined;
    return new Promise((resolve) => {
      const giveUp = () => {
        this.requests.delete(lock);
        resolve(undefined);
      };
      this.requests.set(lock, (holder) => {
        signal.removeEventListener('abort', giveUp);
        resolve(holder);
      });
      signal.addEventListener('abort', giveUp, { once: true });
      void this.link.poll();
    });
  }

  /** Sends the requests in a statement of its own: the locks that it takes stay when it fails. */
  private async request(): Promise<void> {
    const connection = this.link.current;
    if (!connection || this.isRequesting || this.requests.size === 0) return;
    this.isRequesting = true;
    const locks = [...this.requests.keys()];
    try {
      const granted = await connection.query<{ lock: number }>({
        name: 'leader_lock_request',
        text: 'select lock from unnest($1::int[]) as l (lock) where pg_try_advisory_lock(lock)',
        values: [locks],
      });
      for (const { lock } of granted) {
        const grant = this.requests.get(lock);
        this.requests.delete(lock);
        if (grant) grant(connection);
        else await this.release([lock], connection);
      }
      this.failures.succeed();
    } catch (error) {
      this.failures.fail(`no lock can be requested: ${getErrorMessage(error)}`);
      // Nobody knows which of them it got.
      await this.release(locks, connection);
    } finally {
      this.isRequesting = false;
    }
  }

  private async release(locks: number[], holder: Connection): Promise<void> {
    if (holder.lost.aborted) return;
    const text = 'select pg_advisory_unlock(lock) from unnest($1::int[]) as l (lock)';
    const unlock = { text, values: [locks] };
    await holder.query(unlock).catch((error: unknown) => holder.end(error));
  }
}
