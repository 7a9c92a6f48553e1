import { Injectable, Logger } from '@nestjs/common';
import { Config } from '#kernel/config.js';
import { messageOf } from '#kernel/errors.js';
import { pause } from '#kernel/pause.js';
import { checkNowAndThen, databaseClient } from '#database/database-client.js';

const LEADER_LOCK = 727_001;
const POLL_MS = 1_000;
/** Long enough for several polls of the others, so that one of them gets the lock. */
const STEPPED_DOWN_MS = 5_000;
/** Makes the server notice after about ten seconds that the leader's machine has gone. */
const NOTICE_LOSS =
  '-c tcp_keepalives_idle=4 -c tcp_keepalives_interval=2 -c tcp_keepalives_count=3';

/** One dispatcher at a time leads: the one that holds a lock, on a connection of its own. */
@Injectable()
export class LeaderLock {
  private readonly log = new Logger('webhook fan-out');

  constructor(private readonly config: Config) {}

  /**
   * Runs until the signal aborts, whatever happens to the database.
   * @param lead called each time the lock is granted; when it returns by itself, another process gets its turn
   */
  async lead(signal: AbortSignal, lead: (leading: AbortSignal) => Promise<void>): Promise<void> {
    for (let unavailable = false; !signal.aborted;) {
      let wait = POLL_MS;
      try {
        if (await this.campaign(signal, lead)) wait = STEPPED_DOWN_MS;
        unavailable = false;
      } catch (error) {
        if (!unavailable)
          this.log.warn(`the leader's lock could not be requested: ${messageOf(error)}`);
        unavailable = true;
      }
      await pause(wait, signal);
    }
  }

  /**
   * Asks for the lock until it is granted, and leads until the connection that holds it is lost.
   * @returns whether it stepped down
   */
  private async campaign(
    signal: AbortSignal,
    lead: (leading: AbortSignal) => Promise<void>,
  ): Promise<boolean> {
    const client = databaseClient(this.config.databaseUrl, 'webhook fan-out', {
      options: NOTICE_LOSS,
    });
    const lost = new AbortController();
    client.on('error', (error) => {
      this.log.warn(`leadership was lost: ${error.message}`);
      lost.abort();
    });
    client.on('end', () => lost.abort());
    const connected = AbortSignal.any([signal, lost.signal]);
    try {
      await client.connect();
      checkNowAndThen(client);
      while (!connected.aborted) {
        const { rows } = await client.query<{ leads: boolean }>(
          'select pg_try_advisory_lock($1) as leads',
          [LEADER_LOCK],
        );
        if (!rows[0]?.leads) await pause(POLL_MS, connected);
        else {
          await lead(connected);
          if (connected.aborted) return false;
          this.log.log('another dispatcher may lead');
          return true;
        }
      }
      return false;
    } finally {
      await client.end().catch((error: unknown) => this.log.debug(messageOf(error)));
    }
  }
}
