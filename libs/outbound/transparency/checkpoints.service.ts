import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { Config } from '#configuration/config.js';
import { NotFoundError, UnavailableError } from '#platform/kernel/errors.js';
import { RETRY, retryUntil } from '#platform/kernel/retry-until.js';
import { query } from '#platform/database/connection.js';
import type { TreeHead } from './checkpoint.js';

/** The notification channel on which checkpoints are requested. */
export const CHECKPOINT_REQUESTED = 'inkpad_checkpoint';

const SIGNING_TIMEOUT_MS = 5_000;
const POLL_INTERVAL_MS = 200;

/** The newest signed checkpoint. `mailedAt`: when one was last mailed. */
export type NewestCheckpoint = { note: string; size: number; mailedAt: Date | null };

/** Publishes checkpoints and finds them. Only the dispatcher signs them. */
@Injectable()
export class Checkpoints {
  constructor(
    private readonly pool: Pool,
    private readonly config: Config,
  ) {}

  async findNewest(): Promise<NewestCheckpoint | undefined> {
    const [row] = await query<{ note: string | null; size: number; mailed_at: Date | null }>(
      this.pool,
      {
        name: 'checkpoint_newest',
        text: `select checkpoint as note, checkpoint_size as size, mailed_at from transparency_log`,
      },
    );
    if (!row || row.note === null) return undefined;
    return { note: row.note, size: row.size, mailedAt: row.mailed_at };
  }

  /**
   * Gets a checkpoint that covers a leaf, and requests one from the dispatcher if necessary.
   * @throws NotFoundError in production, when none was ever signed
   * @throws UnavailableError when there is none in time
   */
  async getCoveringCheckpoint(index: number): Promise<NewestCheckpoint> {
    let newest: NewestCheckpoint | undefined;
    return retryUntil(
      { withinMs: SIGNING_TIMEOUT_MS, delayMs: POLL_INTERVAL_MS },
      async () => {
        newest = await this.findNewest();
        if (newest && newest.size > index) return newest;
        await query(this.pool, { text: `select pg_notify('${CHECKPOINT_REQUESTED}', '')` });
        return RETRY;
      },
      // Only the dispatcher knows whether there is a key. Without one there will never be a checkpoint.
      () =>
        !newest && this.config.isProduction
          ? new NotFoundError('Checkpoint')
          : new UnavailableError('No checkpoint covers this event yet'),
    );
  }

  /** Publishes a checkpoint, unless a newer one is published already. */
  async publish({ size }: TreeHead, note: string): Promise<void> {
    await query(this.pool, {
      name: 'checkpoint_publish',
      text: `update transparency_log set checkpoint = $1, checkpoint_size = $2, signed_at = now()
             where checkpoint_size <= $2`,
      values: [note, size],
    });
  }
}
