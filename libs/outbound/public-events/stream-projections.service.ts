import { Injectable } from '@nestjs/common';
import { parseStreamName, type DomainEvent } from '#platform/kernel/aggregate.js';
import { DamagedHistoryError } from '#platform/kernel/errors.js';
import { ExpiringCache } from '#platform/kernel/expiring-cache.js';
import { estimateBytes } from '#platform/kernel/rough-bytes.js';
import {
  EventStore,
  type EventRef,
  type StoredEvent,
} from '#platform/event-store/port/event-store.js';
import { PersonalKeys } from '#platform/event-store/personal-keys/personal-keys.js';
import { foldEvent, type Snapshot } from '#platform/event-store/read-models/fold-stream.js';
import { ReadModels, type ReadModel } from '#platform/event-store/read-models/read-models.js';

const CACHE_BYTES = 32 * 1024 * 1024;
/** The cache time of a snapshot with personal data. It is not rendered after an erasure, but must not remain either. */
const PERSONAL_CACHE_MS = 60_000;
/** Limits of reading ahead the earlier events of a batch: of a stream, of all streams, and in one query. */
const READ_AHEAD = { ofStream: 200, maxEvents: 10_000, batchSize: 250, maxBytes: 8 * 1024 * 1024 };

/** Projects the state of aggregates right after each of their events, without reading long streams again. */
@Injectable()
export class StreamProjections {
  private readonly cache = new ExpiringCache<string, Snapshot<object>>({
    maxSize: CACHE_BYTES,
    sizeCalculation: estimateBytes,
  });

  constructor(
    private readonly eventStore: EventStore,
    private readonly keys: PersonalKeys,
    private readonly readModels: ReadModels,
  ) {}

  /** Tells whether a read model may save reading the stream, because the cache has no snapshot of it. */
  needsSnapshot({ stream, revision }: StoredEvent): boolean {
    return revision > 0 && !this.cache.has(stream);
  }

  /**
   * Projects the state after each event.
   * @param events of aggregates of this kind, in the order of the log, with personal data decrypted
   * @param snapshots read models of the streams that need them, by stream
   * @returns by event id
   */
  async projectAfter<S extends { accountId: number }, E extends DomainEvent>(
    rows: ReadModel<S, E>,
    events: StoredEvent[],
    snapshots: Map<string, Snapshot<S>>,
  ): Promise<Map<string, S>> {
    const states = new Map<string, S>();
    const earlier = await this.readEarlierEvents(events, snapshots);
    for (const event of events) {
      const snapshot = await this.findStateAfter(
        rows,
        event,
        snapshots,
        earlier.get(event.stream) ?? [],
      );
      this.remember(rows, event.stream, snapshot);
      states.set(event.id, snapshot.state);
    }
    return states;
  }

  /**
   * Projects the state before and after each event; undefined before the first one.
   * @returns by event id
   */
  async projectAround<S extends { accountId: number }, E extends DomainEvent>(
    rows: ReadModel<S, E>,
    events: StoredEvent[],
  ): Promise<Map<string, { before: S | undefined; after: S }>> {
    const states = new Map<string, { before: S | undefined; after: S }>();
    for (const event of events) {
      const { stream, revision } = event;
      const before =
        revision === 0 ? undefined : await this.findStateAt(rows, stream, revision - 1);
      const isIncluded = before !== undefined && before.revision >= revision;
      const after = isIncluded ? before : applyEvent(rows, before, event);
      this.remember(rows, stream, after);
      states.set(event.id, { before: before?.state, after: after.state });
    }
    return states;
  }

  private remember<S extends { accountId: number }, E extends DomainEvent>(
    rows: ReadModel<S, E>,
    stream: string,
    snapshot: Snapshot<S>,
  ): void {
    this.cache.set(stream, snapshot, rows.findSubjectId ? { ttl: PERSONAL_CACHE_MS } : {});
  }

  private async findStateAt<S extends { accountId: number }, E extends DomainEvent>(
    rows: ReadModel<S, E>,
    stream: string,
    revision: number,
  ): Promise<Snapshot<S>> {
    const cached = this.cache.get(stream) as Snapshot<S> | undefined;
    if (cached?.revision === revision) return cached;
    const from = cached && cached.revision < revision ? cached : undefined;
    return this.project(rows, { stream, revision }, from);
  }

  private async findStateAfter<S extends { accountId: number }, E extends DomainEvent>(
    rows: ReadModel<S, E>,
    event: StoredEvent,
    snapshots: Map<string, Snapshot<S>>,
    earlier: StoredEvent[],
  ): Promise<Snapshot<S>> {
    // A stream's name contains its aggregate, so the cached state has the right type.
    const cached = this.cache.get(event.stream) as Snapshot<S> | undefined;
    if (event.revision === 0 || cached?.revision === event.revision - 1) {
      return applyEvent(rows, event.revision === 0 ? undefined : cached, event);
    }
    const snapshot = snapshots.get(event.stream);
    if (snapshot?.revision === event.revision) return snapshot;
    const from = cached && cached.revision < event.revision ? cached : undefined;
    const firstRevision = from ? from.revision + 1 : 0;
    if (
      earlier[0]?.revision === firstRevision &&
      earlier.length === event.revision - firstRevision
    ) {
      return applyEvent(rows, from, event, earlier);
    }
    return this.project(rows, event, from);
  }

  /**
   * Reads the events between the cached snapshot and the first event of each stream. After a pause these are a few
   * events of each of thousands of streams, too many to read stream by stream.
   */
  private async readEarlierEvents(
    events: StoredEvent[],
    snapshots: Map<string, Snapshot<object>>,
  ): Promise<Map<string, StoredEvent[]>> {
    const refs: EventRef[] = [];
    const streams = new Set<string>();
    for (const { stream, revision } of events) {
      if (streams.has(stream)) continue;
      streams.add(stream);
      if (snapshots.get(stream)?.revision === revision) continue;
      const cachedRevision = this.cache.get(stream)?.revision ?? -1;
      const from = cachedRevision < revision ? cachedRevision + 1 : 0;
      if (
        revision - from > READ_AHEAD.ofStream ||
        refs.length + revision - from > READ_AHEAD.maxEvents
      )
        continue;
      for (let next = from; next < revision; next++) refs.push({ stream, revision: next });
    }
    const read: StoredEvent[] = [];
    // Once enough has been read, the remaining streams are read one by one.
    for (
      let i = 0, bytes = 0;
      i < refs.length && bytes < READ_AHEAD.maxBytes;
      i += READ_AHEAD.batchSize
    ) {
      const batch = await this.eventStore.readEvents(refs.slice(i, i + READ_AHEAD.batchSize));
      for (const event of batch) bytes += estimateBytes(event);
      read.push(...batch);
    }
    const byStream = new Map<string, StoredEvent[]>();
    for (const event of await this.keys.openEvents(read)) {
      const existing = byStream.get(event.stream);
      if (existing) existing.push(event);
      else byStream.set(event.stream, [event]);
    }
    for (const streamEvents of byStream.values())
      streamEvents.sort((a, b) => a.revision - b.revision);
    return byStream;
  }

  private async project<S extends { accountId: number }, E extends DomainEvent>(
    rows: ReadModel<S, E>,
    { stream, revision }: Pick<StoredEvent, 'stream' | 'revision'>,
    from: Snapshot<S> | undefined,
  ): Promise<Snapshot<S>> {
    try {
      const to = revision;
      const projected = await this.readModels.project(rows, stream, { from, to });
      if (projected?.head.revision !== revision)
        throw new Error(`${stream} ends before revision ${revision}`);
      return { state: projected.state, revision };
    } catch (error) {
      if (!(error instanceof DamagedHistoryError)) throw error;
      // Others must not wait for its repair. What is left of the record is in its read model, perhaps of a later event.
      const current = await this.readModels.load(rows, parseStreamName(stream).id);
      if (!current || current.head.revision < revision) throw error;
      return { state: current.state, revision: current.head.revision };
    }
  }
}

function applyEvent<S extends { accountId: number }, E extends DomainEvent>(
  readModel: ReadModel<S, E>,
  from: Snapshot<S> | undefined,
  event: StoredEvent,
  earlier: StoredEvent[] = [],
): Snapshot<S> {
  let state = from?.state;
  for (const earlierEvent of earlier) ({ state } = foldEvent(readModel, state, earlierEvent));
  return { state: foldEvent(readModel, state, event).state, revision: event.revision };
}
