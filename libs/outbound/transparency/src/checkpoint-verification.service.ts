import type { Verifier } from '#kernel/signed-note.js';
import { BEGINNING, type EventStore, type StoredEvent } from '#event-store/event-store.js';
import { chain } from '#event-store/hash-chain.js';
import {
  UnreadableCheckpointError,
  type CheckpointFiles,
  type StoredCheckpoint,
} from './checkpoint-folder.service.js';
import { leafOf } from './leaf.js';
import { EMPTY, grown, rootOfEdge, type Edge } from './tiles.js';
import type { Tree } from './tree.service.js';

const PAGE = 5_000;

export type CheckedCheckpoints = {
  checkpoints: number;
  /** Events that the last of them covers that was found right. */
  covered: number;
  /** One sentence for each. */
  faults: string[];
};

/**
 * Compares signed checkpoints with the events themselves: what each stream's events hash to, and what tree they make in
 * the order of the log. The tree in the database only helps to say where a difference begins, and only where the
 * checkpoint itself vouches for it.
 */
export class CheckpointVerification {
  constructor(
    private readonly store: EventStore,
    private readonly tree: Tree,
  ) {}

  /** Memory grows with the number of streams, not with their lengths. */
  async verify(files: CheckpointFiles, verifier: Verifier): Promise<CheckedCheckpoints> {
    const faults: string[] = [];
    const checkpoints = await readAll(files, verifier, faults);
    const walk = new Walk(faults);
    let covered = 0;
    for (const [i, checkpoint] of checkpoints.entries()) {
      await this.walkTo(walk, checkpoint.size);
      const fault = await this.faultOf(checkpoint, walk, covered);
      if (fault === undefined) {
        covered = checkpoint.size;
        continue;
      }
      const later = checkpoints.length - i - 1;
      faults.push(later > 0 ? `${fault}; ${later} later checkpoints are not compared` : fault);
      break;
    }
    return { checkpoints: checkpoints.length, covered, faults };
  }

  private async walkTo(walk: Walk, size: number): Promise<void> {
    while (walk.size < size) {
      const page = await this.store.readAll(walk.position, Math.min(PAGE, size - walk.size));
      if (page.length === 0) return;
      walk.add(page);
    }
  }

  private async faultOf(
    checkpoint: StoredCheckpoint,
    walk: Walk,
    covered: number,
  ): Promise<string | undefined> {
    const { file, size, root } = checkpoint;
    if (walk.size < size) {
      return `${file} covers ${size} events, and the history has only ${walk.size}: events are missing`;
    }
    if (walk.root.equals(root)) return undefined;
    const where = await this.firstDifference(checkpoint, covered);
    const since = covered > 0 ? `, although the first ${covered} are` : '';
    return `${file}: the first ${size} events are not those that it covers${since}${where}`;
  }

  /** The tree in the database tells the leaves, if it still has the root that was signed. */
  private async firstDifference(
    { size, root }: StoredCheckpoint,
    covered: number,
  ): Promise<string> {
    try {
      if (!(await this.tree.head(size)).root.equals(root)) return '';
      let index = 0;
      for (let after = BEGINNING; index < size;) {
        const page = await this.store.readAll(after, Math.min(PAGE, size - index));
        for (const event of page) {
          if (index >= covered && !(await this.tree.leaf(index)).equals(leafOf(event))) {
            return `: number ${index} was another, where ${event.stream} revision ${event.revision} is now`;
          }
          index++;
          after = event.position;
        }
        if (page.length === 0) break;
      }
      return '';
    } catch {
      // Whoever changes the history may have spoilt the tree as well: then nothing says where.
      return '';
    }
  }
}

/** The history so far, read in order. */
class Walk {
  position = BEGINNING;
  private edge: Edge = EMPTY;
  private readonly heads = new Map<string, { revision: number; hash: string }>();

  constructor(private readonly faults: string[]) {}

  get size(): number {
    return this.edge.size;
  }

  get root(): Buffer {
    return rootOfEdge(this.edge);
  }

  add(events: StoredEvent[]): void {
    for (const event of events) this.check(event);
    this.edge = grown(this.edge, events.map(leafOf)).edge;
    this.position = events.at(-1)?.position ?? this.position;
  }

  private check(event: StoredEvent): void {
    const { stream, revision, hash } = event;
    const before = this.heads.get(stream) ?? null;
    const [due] = chain(stream, before, [event]);
    if (due?.revision !== revision) {
      this.faults.push(`${stream}: event ${due?.revision} is missing`);
    } else if (due.hash !== hash) {
      this.faults.push(`${stream}: event ${revision} breaks the hash chain`);
    }
    this.heads.set(stream, { revision, hash });
  }
}

/** Each that cannot be read is a fault, and the others are still compared. */
async function readAll(
  files: CheckpointFiles,
  verifier: Verifier,
  faults: string[],
): Promise<StoredCheckpoint[]> {
  const read: StoredCheckpoint[] = [];
  for await (const checkpoint of files.read(verifier)) {
    if (checkpoint instanceof UnreadableCheckpointError) faults.push(checkpoint.message);
    else read.push(checkpoint);
  }
  return read;
}
