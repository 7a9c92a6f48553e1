import { Injectable, Logger } from '@nestjs/common';
import { LeaderLock } from '#database/leader-lock.js';
import { EventStore, type Position, type StoredEvent } from '#event-store/port/event-store.js';
import { followLog } from '#event-store/log/follow-log.js';
import { CheckpointSigning } from './checkpoint-signing.service.js';
import { hashLeaf } from './leaf.js';
import { Tree, TRANSPARENCY_LOG } from './tree.service.js';

const LEADERSHIP = { name: TRANSPARENCY_LOG, lock: 727_003 };
const BATCH_SIZE = 2_000;
/** Each append rewrites the last tile of 8 KB, so single events wait for more. */
const GATHER_MS = 250;

/**
 * Appends every event of the log to the tree, in order and exactly once. One process does this at a time. The lock only
 * avoids duplicate work; the comparison of sizes in `append` makes it safe.
 */
@Injectable()
export class TransparencyLog {
  private readonly log = new Logger(LEADERSHIP.name);

  constructor(
    private readonly eventStore: EventStore,
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
    let edge: Awaited<ReturnType<Tree['read']>>['edge'];
    const follower = {
      batch: BATCH_SIZE,
      gatherMs: GATHER_MS,
      readPosition: async () => {
        const reached = await this.tree.read();
        edge = reached.edge;
        return reached.position;
      },
      advance: async (_from: Position, events: StoredEvent[], to: Position) => {
        edge = await this.tree.append(edge, events.map(hashLeaf), to);
      },
    };
    await followLog(this.eventStore, follower, this.log, signal);
  }
}
