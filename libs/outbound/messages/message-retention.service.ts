import { Injectable, Logger } from '@nestjs/common';
import { Pool } from 'pg';
import { Config } from '#configuration/config.js';
import { workDaily } from '#platform/event-store/log/follow-log.js';

const BATCH_SIZE = 1_000;

/** Several processes may do it. */
const DELETE = {
  name: 'card_messages_delete_old',
  text: `delete from card_messages where id in (
           select id from card_messages
           where finished_at < now() - make_interval(days => $1)
           order by finished_at limit ${BATCH_SIZE} for update skip locked)`,
};

/** Deletes card links that were finished long ago, where a setting says so. Those that are held or queued stay. */
@Injectable()
export class MessageRetention {
  private readonly log = new Logger('messages');

  constructor(
    private readonly pool: Pool,
    private readonly config: Config,
  ) {}

  /** Runs until the signal aborts, whatever happens to the database. */
  async run(signal: AbortSignal): Promise<void> {
    const { messageRetentionDays: days } = this.config;
    if (days === null) return;
    await workDaily(this.log, signal, async () => (await this.deleteOld(days)) === BATCH_SIZE);
  }

  /** Deletes a batch. @returns how many it had */
  async deleteOld(days: number): Promise<number> {
    return (await this.pool.query({ ...DELETE, values: [days] })).rowCount ?? 0;
  }
}
