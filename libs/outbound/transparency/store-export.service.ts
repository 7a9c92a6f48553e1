import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { NotFoundError } from '#platform/kernel/errors.js';
import { query } from '#platform/database/connection.js';
import { EventStore, type StoredEvent } from '#platform/event-store/port/event-store.js';
import { PersonalKeys } from '#platform/event-store/personal-keys/personal-keys.js';
import { Checkpoints } from './checkpoints.service.js';
import { EXPORT_FORMAT, findPictureHash, type ExportLine } from './store-transfer-file.js';
import { Tree } from './tree.service.js';

const PAGE_SIZE = 500;

type EventPlace = { seq: number; stream: string; revision: number };
type ExportedEventData = Omit<StoredEvent, 'position'>;

const FIND_LAST = {
  name: 'export_last',
  text: 'select seq from history where account_id = $1 order by seq desc limit 1',
};
const FIND_PLACES = {
  name: 'export_entries',
  text: `select seq, stream, revision from history
         where account_id = $1 and seq > $2 and seq < $3 order by seq limit ${PAGE_SIZE}`,
};
const FIND_CUSTOMERS = {
  name: 'export_customers',
  text: `select id from customers where account_id = $1 and id > $2 order by id limit ${PAGE_SIZE}`,
};

const FIND_PICTURE = {
  name: 'export_picture',
  text: 'select png from pictures where hash = $1 and account_id = $2',
};

/** Exports the whole history of one store line by line, with a proof for each event. */
@Injectable()
export class StoreExport {
  constructor(
    private readonly pool: Pool,
    private readonly eventStore: EventStore,
    private readonly keys: PersonalKeys,
    private readonly tree: Tree,
    private readonly checkpoints: Checkpoints,
  ) {}

  /**
   * Exports the history.
   * @param personal whether to include what an import needs: the pictures, and the customers' keys, without which
   *   personal data remains sealed for ever
   * @throws NotFoundError, UnavailableError
   */
  async *exportLines(
    accountId: number,
    personal: boolean,
  ): AsyncIterable<ExportLine<ExportedEventData>> {
    const [last] = await query<{ seq: number }>(this.pool, { ...FIND_LAST, values: [accountId] });
    if (!last) throw new NotFoundError('Store');
    const { note, size } = await this.checkpoints.getCoveringCheckpoint(last.seq);
    yield { format: EXPORT_FORMAT, account_id: accountId, checkpoint: note, personal };
    let [events, streams] = [0, 0];
    const pictures = new Set<string>();
    for (let after = -1; ;) {
      const places = await query<EventPlace>(this.pool, {
        ...FIND_PLACES,
        values: [accountId, after, size],
      });
      const lastPlace = places.at(-1);
      if (!lastPlace) break;
      for await (const line of this.exportPage(places, size)) {
        if (line.event.revision === 0) streams++;
        events++;
        const picture = findPictureHash(line.event);
        if (picture !== undefined) pictures.add(picture);
        yield line;
      }
      after = lastPlace.seq;
    }
    if (personal) {
      yield* this.exportPersonalKeys(accountId);
      yield* this.exportPictures(accountId, pictures);
    }
    yield { end: { events, streams } };
  }

  private async *exportPage(places: EventPlace[], size: number) {
    const storedEvents = await this.eventStore.readEvents(places);
    const byPlace = new Map(
      storedEvents.map((event) => [`${event.stream} ${event.revision}`, event]),
    );
    const proofs = await this.tree.getInclusionProofs(
      places.map(({ seq }) => seq),
      size,
    );
    for (const [i, { seq, stream, revision }] of places.entries()) {
      const event = byPlace.get(`${stream} ${revision}`);
      if (!event) throw new Error(`${stream} lacks event ${revision}`);
      const { position: _, ...exported } = event;
      const proof = (proofs[i] ?? []).map((hash) => hash.toString('base64'));
      yield { event: exported, leaf_index: seq, inclusion_proof: proof };
    }
  }

  /** Exports the pictures one at a time, because each may have more than a megabyte. */
  private async *exportPictures(accountId: number, hashes: Set<string>) {
    for (const hash of hashes) {
      const [picture] = await query<{ png: Buffer }>(this.pool, {
        ...FIND_PICTURE,
        values: [hash, accountId],
      });
      // Null: nothing showed it any more, so it was deleted.
      yield { picture: { hash, png: picture?.png.toString('base64') ?? null } };
    }
  }

  private async *exportPersonalKeys(accountId: number) {
    for (let after = 0; ;) {
      const rows = await query<{ id: number }>(this.pool, {
        ...FIND_CUSTOMERS,
        values: [accountId, after],
      });
      const last = rows.at(-1);
      if (!last) return;
      const keys = await this.keys.findForExport(rows.map(({ id }) => id));
      for (const { id } of rows) {
        const key = keys.get(id);
        yield {
          personal_key: {
            customer_id: id,
            key: key?.current.toString('base64') ?? null,
            ...(key?.isRenewed && { renewed: true }),
          },
        };
      }
      after = last.id;
    }
  }
}
