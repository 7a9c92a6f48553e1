import { Injectable, Logger } from '@nestjs/common';
import { messageOf } from '#kernel/errors.js';
import { pause } from '#kernel/pause.js';
import { isDatabaseUnavailable } from '#database/connection.js';
import { LeaderLock } from '#database/leader-lock.js';
import { EventStore } from '#event-store/event-store.js';
import { CheckpointSigning } from './checkpoint-signing.service.js';
import { leafOf } from './leaf.js';
import { OutgrownError, Tree, TRANSPARENCY_LOG } from './tree.service.js';

const LEADERSHIP = { name: TRANSPARENCY_LOG, lock: 727_003 };
const BATCH = 2_000;
/** Each growth rewrites the last tile of 8 KB, so that single events wait for others. */
const GATHER_MS = 250;
const BACK_OFF_MS = { first: 500, longest: 30_000 };

/**
 * Adds every event of the log to the tree, in order and once. One process does this at a time. Its lock only saves the
 * others the work; that the size is compared when the tree grows is what makes it safe.
 */
@Injectable()
export class TransparencyLog {
  private readonly log = new Logger(LEADERSHIP.name);

  constructor(
    private readonly store: EventStore,
    private readonly tree: Tree,
    private readonly signing: CheckpointSigning,
    private readonly lock: LeaderLock,
  ) {}

  /** Runs until the signal aborts, whatever happens to the database. */
  async run(signal: AbortSignal): Promise<void> {
    await this.lock.lead(LEADERSHIP, signal, async (leading) => {
      await Promise.all([this.follow(leading), this.signing.run(leading)]);
    });
  }

  private async follow(signal: AbortSignal): Promise<void> {
    for (let backOff = BACK_OFF_MS.first; !signal.aborted;) {
      try {
        const reached = await this.tree.read();
        let edge = reached.edge;
        await this.store.subscribe({
          after: reached.position,
          batch: BATCH,
          signal,
          onEvents: async (events, to) => {
            edge = await this.tree.grow(edge, events.map(leafOf), to);
            backOff = BACK_OFF_MS.first;
            if (events.length < BATCH) await pause(GATHER_MS, signal);
          },
        });
      } catch (error) {
        if (error instanceof OutgrownError) continue;
        const message = `${messageOf(error)}; next try in ${backOff} ms`;
        if (isDatabaseUnavailable(error)) this.log.warn(message);
        else this.log.error(message, error instanceof Error ? error.stack : undefined);
        await pause(backOff, signal);
        backOff = Math.min(2 * backOff, BACK_OFF_MS.longest);
      }
    }
  }
}
