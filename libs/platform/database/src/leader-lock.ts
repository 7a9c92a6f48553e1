import { Injectable, Logger } from '@nestjs/common';
import { Gauge, Registry } from 'prom-client';
import { PlatformConfig } from '#kernel/platform-config.js';
import { getErrorMessage } from '#kernel/errors.js';
import { pause } from '#kernel/pause.js';
import { startChecks } from './connection-checks.js';
import { createDatabaseClient } from './database-client.js';

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

/** Elects a leader: the process that holds a lock, on a connection of its own. */
@Injectable()
export class LeaderLock {
  private readonly leads: Gauge<'work'>;

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
        if (await this.campaign({ name, lock }, log, signal, this.measure(name, lead)))
          wait = STEP_DOWN_MS;
        isUnavailable = false;
      } catch (error) {
        if (!isUnavailable)
          log.warn(`could not request the leader lock: ${getErrorMessage(error)}`);
        isUnavailable = true;
      }
      await pause(wait, signal);
    }
  }

  private measure(
    work: string,
    lead: (leading: AbortSignal) => Promise<void>,
  ): (leading: AbortSignal) => Promise<void> {
    return async (leading) => {
      this.leads.set({ work }, 1);
      await lead(leading).finally(() => this.leads.set({ work }, 0));
    };
  }

  /**
   * Requests the lock until it is granted, and leads until the connection that holds it is lost.
   * @returns whether it stepped down
   */
  private async campaign(
    { name, lock }: Leadership,
    log: Logger,
    signal: AbortSignal,
    lead: (leading: AbortSignal) => Promise<void>,
  ): Promise<boolean> {
    const client = createDatabaseClient(this.config.databaseUrl, name, { session: NOTICE_LOSS });
    const lost = new AbortController();
    client.on('error', (error) => {
      log.warn(`leadership was lost: ${error.message}`);
      lost.abort();
    });
    client.on('end', () => lost.abort());
    const connected = AbortSignal.any([signal, lost.signal]);
    try {
      await client.connect();
      const query = startChecks(client);
      while (!connected.aborted) {
        const [row] = await query<{ leads: boolean }>({
          text: 'select pg_try_advisory_lock($1) as leads',
          values: [lock],
        });
        if (!row?.leads) await pause(POLL_MS, connected);
        else {
          await lead(connected);
          if (connected.aborted) return false;
          log.log('another dispatcher may lead');
          return true;
        }
      }
      return false;
    } finally {
      await client.end().catch((error: unknown) => log.debug(getErrorMessage(error)));
    }
  }
}
