import { Injectable } from '@nestjs/common';
import { LOCKS } from '#platform/database/locks.js';
import { Followers } from '#platform/event-store/log/followers.service.js';
import { CheckpointSigning } from './checkpoint-signing.service.js';
import { hashLeaf } from './leaf.js';
import { Tree, TRANSPARENCY_LOG } from './tree.service.js';

/** Appends every event of the log to the tree, in order and exactly once: `append` compares the sizes. */
@Injectable()
export class TransparencyLog {
  constructor(
    private readonly followers: Followers,
    private readonly tree: Tree,
    private readonly signing: CheckpointSigning,
  ) {}

  /** Runs until the signal aborts, whatever happens to the database. */
  async run(signal: AbortSignal): Promise<void> {
    let edge: Awaited<ReturnType<Tree['read']>>['edge'];
    await this.followers.run(
      {
        name: TRANSPARENCY_LOG,
        lock: LOCKS.transparency,
        batch: 2_000,
        // Each append rewrites the last tile of 8 KB, so single events wait for more.
        gatherMs: 250,
        readPosition: async () => {
          const reached = await this.tree.read();
          edge = reached.edge;
          return reached.position;
        },
        advance: async (_from, events, to) => {
          edge = await this.tree.append(edge, events.map(hashLeaf), to);
        },
        runBeside: (leading) => this.signing.run(leading),
      },
      signal,
    );
  }
}
