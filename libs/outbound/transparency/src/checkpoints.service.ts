import { Injectable } from '@nestjs/common';
import { setTimeout as wait } from 'node:timers/promises';
import { Pool } from 'pg';
import { Config } from '#kernel/config.js';
import { NotFoundError, UnavailableError } from '#kernel/errors.js';
import { ask } from '#database/connection.js';
import type { TreeHead } from './checkpoint.js';

/** On which checkpoints are asked for. */
export const CHECKPOINT_REQUESTED = 'inkpad_checkpoint';

const SIGNING_TIMEOUT_MS = 5_000;
const POLL_INTERVAL_MS = 200;

/** The newest signed checkpoint. `mailedAt`: when one was last sent by mail. */
export type NewestCheckpoint = { note: string; size: number; mailedAt: Date | null };

/** Checkpoints as they are published. Only the dispatcher signs them. */
@Injectable()
export class Checkpoints {
  constructor(
    private readonly pool: Pool,
    private readonly config: Config,
  ) {}

  async findNewest(): Promise<NewestCheckpoint | undefined> {
    const [row] = await ask<{ note: string | null; size: number; mailed_at: Date | null }>(
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
   * A checkpoint that covers a leaf; asks the dispatcher to sign one if necessary.
   * @throws NotFoundError in production, when none was ever signed
   * @throws UnavailableError when none comes in time
   */
  async getCovering(index: number): Promise<NewestCheckpoint> {
    for (const deadline = performance.now() + SIGNING_TIMEOUT_MS; ;) {
      const newest = await this.findNewest();
      if (newest && newest.size > index) return newest;
      if (performance.now() > deadline) {
        // Only the dispatcher has the key, or knows that there is none: without one the first never comes.
        if (!newest && this.config.production) throw new NotFoundError('Checkpoint');
        throw new UnavailableError('No checkpoint covers this event yet');
      }
      await ask(this.pool, { text: `select pg_notify('${CHECKPOINT_REQUESTED}', '')` });
      await wait(POLL_INTERVAL_MS);
    }
  }

  /** An older one than what is published changes nothing. */
  async publish({ size }: TreeHead, note: string): Promise<void> {
    await ask(this.pool, {
      name: 'checkpoint_publish',
      text: `update transparency_log set checkpoint = $1, checkpoint_size = $2, signed_at = now()
             where checkpoint_size <= $2`,
      values: [note, size],
    });
  }
}
