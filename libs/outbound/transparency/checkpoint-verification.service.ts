import type { Verifier } from '#platform/kernel/signed-note.js';
import {
  BEGINNING,
  type EventStore,
  type StoredEvent,
} from '#platform/event-store/port/event-store.js';
import { hashChain } from '#platform/event-store/port/hash-chain.js';
import {
  UnreadableCheckpointError,
  type CheckpointFiles,
  type StoredCheckpoint,
} from './checkpoint-folder.service.js';
import { hashLeaf } from './leaf.js';
import { EMPTY, growEdge, hashEdge, type Edge } from './tiles.js';
import type { Tree } from './tree.service.js';

const PAGE = 5_000;

export type CheckpointVerificationResult = {
  checkpoints: number;
  /** How many events the last correct checkpoint covers. */
  coveredCount: number;
  /** One sentence for each error. */
  errors: string[];
};

/**
 * Verifies signed checkpoints against the events: the hash chain of each stream, and the tree in the order of the log.
 * The tree in the database is only used to locate the first difference, and only if it has the root that was signed.
 */
export class CheckpointVerification {
  constructor(
    private readonly eventStore: EventStore,
    private readonly tree: Tree,
  ) {}

  /** Verifies all checkpoints of a folder. Its memory grows with the number of streams, not with their lengths. */
  async verify(files: CheckpointFiles, verifier: Verifier): Promise<CheckpointVerificationResult> {
    const errors: string[] = [];
    const checkpoints = await readCheckpoints(files, verifier, errors);
    const log = new LogWalk(errors);
    let coveredCount = 0;
    for (const [i, checkpoint] of checkpoints.entries()) {
      await this.walkTo(log, checkpoint.size);
      const error = await this.findError(checkpoint, log, coveredCount);
      if (error === undefined) {
        coveredCount = checkpoint.size;
        continue;
      }
      const laterCount = checkpoints.length - i - 1;
      errors.push(
        laterCount > 0 ? `${error}; ${laterCount} later checkpoints were not compared` : error,
      );
      break;
    }
    return { checkpoints: checkpoints.length, coveredCount, errors };
  }

  private async walkTo(walk: LogWalk, size: number): Promise<void> {
    while (walk.size < size) {
      const page = await this.eventStore.readAll(walk.position, Math.min(PAGE, size - walk.size));
      if (page.length === 0) return;
      walk.add(page);
    }
  }

  private async findError(
    checkpoint: StoredCheckpoint,
    walk: LogWalk,
    coveredCount: number,
  ): Promise<string | undefined> {
    const { file, size, root } = checkpoint;
    if (walk.size < size) {
      return `${file} covers ${size} events, and the history has only ${walk.size}: events are missing`;
    }
    if (walk.root.equals(root)) return undefined;
    const position = await this.describeFirstDifference(checkpoint, coveredCount);
    const matching = coveredCount > 0 ? `, although the first ${coveredCount} are` : '';
    return `${file}: the first ${size} events are not those that it covers${matching}${position}`;
  }

  /** Describes the first difference by the leaves in the database, if their tree still has the root that was signed. */
  private async describeFirstDifference(
    { size, root }: StoredCheckpoint,
    coveredCount: number,
  ): Promise<string> {
    try {
      if (!(await this.tree.getHead(size)).root.equals(root)) return '';
      let index = 0;
      for (let after = BEGINNING; index < size;) {
        const page = await this.eventStore.readAll(after, Math.min(PAGE, size - index));
        for (const event of page) {
          if (index >= coveredCount && !(await this.tree.getLeaf(index)).equals(hashLeaf(event))) {
            return `: number ${index} was another, where ${event.stream} revision ${event.revision} is now`;
          }
          index++;
          after = event.position;
        }
        if (page.length === 0) break;
      }
      return '';
    } catch {
      // The tree may have been manipulated together with the history. Then the difference cannot be located.
      return '';
    }
  }
}

/** The tree and the hash chains of the events that were read so far. */
class LogWalk {
  position = BEGINNING;
  private edge: Edge = EMPTY;
  private readonly heads = new Map<string, { revision: number; hash: string }>();

  constructor(private readonly errors: string[]) {}

  get size(): number {
    return this.edge.size;
  }

  get root(): Buffer {
    return hashEdge(this.edge);
  }

  add(events: StoredEvent[]): void {
    for (const event of events) this.check(event);
    this.edge = growEdge(this.edge, events.map(hashLeaf)).edge;
    this.position = events.at(-1)?.position ?? this.position;
  }

  private check(event: StoredEvent): void {
    const { stream, revision, hash } = event;
    const before = this.heads.get(stream) ?? null;
    const [expected] = hashChain(stream, before, [event]);
    if (expected?.revision !== revision) {
      this.errors.push(`${stream}: event ${expected?.revision} is missing`);
    } else if (expected.hash !== hash) {
      this.errors.push(`${stream}: event ${revision} breaks the hash chain`);
    }
    this.heads.set(stream, { revision, hash });
  }
}

/** Reads the checkpoints of a folder. An unreadable one is an error, and the others are still compared. */
async function readCheckpoints(
  files: CheckpointFiles,
  verifier: Verifier,
  errors: string[],
): Promise<StoredCheckpoint[]> {
  const readable: StoredCheckpoint[] = [];
  for await (const checkpoint of files.read(verifier)) {
    if (checkpoint instanceof UnreadableCheckpointError) errors.push(checkpoint.message);
    else readable.push(checkpoint);
  }
  return readable;
}
