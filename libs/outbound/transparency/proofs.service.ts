import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { NotFoundError, UnavailableError } from '#platform/kernel/errors.js';
import { parsePublicEventId } from '#platform/kernel/public-id.js';
import { RETRY, retryUntil } from '#platform/kernel/retry-until.js';
import { query } from '#platform/database/connection.js';
import { EventStore, type StoredEvent } from '#platform/event-store/port/event-store.js';
import { HistoryTable } from '#loyalty/history/history-table.service.js';
import { Checkpoints } from './checkpoints.service.js';
import { hashLeaf } from './leaf.js';
import type { EventProof } from './proof.dto.js';
import { Tree } from './tree.service.js';

const HISTORY_TIMEOUT_MS = 5_000;
const POLL_INTERVAL_MS = 200;

const FIND_PLACE = {
  name: 'proof_find_event',
  text: 'select seq, stream, revision from history where event_id = $1 and account_id = $2',
};

type EventPlace = { seq: number; stream: string; revision: number };

/** Proves that an event is in the signed history. */
@Injectable()
export class Proofs {
  constructor(
    private readonly pool: Pool,
    private readonly eventStore: EventStore,
    private readonly history: HistoryTable,
    private readonly tree: Tree,
    private readonly checkpoints: Checkpoints,
  ) {}

  /**
   * Gets the proof of an event.
   * @throws NotFoundError
   * @throws UnavailableError when history or checkpoint do not reach the event in time
   */
  async getEventProof(accountId: number, publicId: string): Promise<EventProof> {
    const {
      seq: index,
      stream,
      revision,
    } = await this.getPlace(accountId, parsePublicEventId(publicId));
    const { note, size } = await this.checkpoints.getCoveringCheckpoint(index);
    const { event, previousHash } = await this.readEvent(stream, revision);
    if (!(await this.tree.getLeaf(index)).equals(hashLeaf(event))) {
      throw new Error(`leaf ${index} of the tree is not event ${event.id} (inkpad verify)`);
    }
    const proof = await this.tree.getInclusionProof(index, size);
    return { event, previousHash, index, size, root: note.split('\n')[2] ?? '', proof, note };
  }

  /** Gets the place of an event in the history, which may lag behind the event store. */
  private async getPlace(accountId: number, eventId: string | undefined): Promise<EventPlace> {
    if (eventId === undefined) throw new NotFoundError('Event');
    const head = await this.eventStore.head();
    return retryUntil(
      { withinMs: HISTORY_TIMEOUT_MS, delayMs: POLL_INTERVAL_MS },
      async () => {
        // Read first: an event that is not found afterwards does not exist.
        const { position } = await this.history.getProgress();
        const isComplete = (await this.eventStore.readUntil(head, position, 1)).length === 0;
        const [place] = await query<EventPlace>(this.pool, {
          ...FIND_PLACE,
          values: [eventId, accountId],
        });
        if (!place && isComplete) throw new NotFoundError('Event');
        return place ?? RETRY;
      },
      () => new UnavailableError('The history is behind'),
    );
  }

  private async readEvent(
    stream: string,
    revision: number,
  ): Promise<{ event: StoredEvent; previousHash: string | null }> {
    const revisions = [revision, revision - 1].filter((n) => n >= 0);
    const events = await this.eventStore.readEvents(
      revisions.map((n) => ({ stream, revision: n })),
    );
    const event = events.find((candidate) => candidate.revision === revision);
    const before = events.find((candidate) => candidate.revision === revision - 1);
    if (!event || (revision > 0 && !before)) throw new Error(`${stream} lacks event ${revision}`);
    return { event, previousHash: before?.hash ?? null };
  }
}
