import { Injectable } from '@nestjs/common';
import type { DomainEvent } from '#kernel/aggregate.js';
import { ExpiringCache } from '#kernel/expiring-cache.js';
import { roughBytes } from '#kernel/rough-bytes.js';
import { recorded } from '#event-store/codec.js';
import { EventStore, type EventRef, type StoredEvent } from '#event-store/event-store.js';
import { PersonalKeys } from '#event-store/personal-keys.js';
import type { RowTable } from '#event-store/rows.js';

const FOLDS_KEPT_BYTES = 32 * 1024 * 1024;
/** Of a fold that shows personal data: nothing is rendered of it after an erasure, but it is not to stay either. */
const PERSONAL_KEPT_MS = 60_000;
const PAGE = 200;
/** How many earlier events are read ahead for a batch: over all streams, and in one query. */
const AHEAD = { most: 10_000, atOnce: 250, bytes: 8 * 1024 * 1024 };

/** A state and the event that it is right after. */
export type Fold<S> = { state: S; revision: number };

/** The state of an aggregate right after each of its events, without reading long streams again. */
@Injectable()
export class StreamFolds {
  private readonly known = new ExpiringCache<string, Fold<object>>({
    maxSize: FOLDS_KEPT_BYTES,
    sizeCalculation: roughBytes,
  });

  constructor(
    private readonly store: EventStore,
    private readonly keys: PersonalKeys,
  ) {}

  /** Whether a row of the stream, which is a fold as well, may save reading it: nothing of it is known. */
  needsSnapshot({ stream, revision }: StoredEvent): boolean {
    return revision > 0 && !this.known.has(stream);
  }

  /**
   * @param events of aggregates of this kind, in the order of the log, with personal data decrypted
   * @param snapshots rows of those that need them, by stream
   * @returns by event id
   */
  async statesAfter<S extends { accountId: number }, E extends DomainEvent>(
    rows: RowTable<S, E>,
    events: StoredEvent[],
    snapshots: Map<string, Fold<S>>,
  ): Promise<Map<string, S>> {
    const states = new Map<string, S>();
    const earlier = await this.earlier(events, snapshots);
    for (const event of events) {
      const fold = await this.after(rows, event, snapshots, earlier.get(event.stream) ?? []);
      this.keep(rows, event.stream, fold);
      states.set(event.id, fold.state);
    }
    return states;
  }

  /**
   * The state before and after each event; undefined before the first one.
   * @returns by event id
   */
  async statesAround<S extends { accountId: number }, E extends DomainEvent>(
    rows: RowTable<S, E>,
    events: StoredEvent[],
  ): Promise<Map<string, { before: S | undefined; after: S }>> {
    const states = new Map<string, { before: S | undefined; after: S }>();
    for (const event of events) {
      const { stream, revision } = event;
      const before = revision === 0 ? undefined : await this.at(rows, stream, revision - 1);
      const after = evolved(rows, before, [event]);
      this.keep(rows, stream, after);
      states.set(event.id, { before: before?.state, after: after.state });
    }
    return states;
  }

  private keep<S extends { accountId: number }, E extends DomainEvent>(
    rows: RowTable<S, E>,
    stream: string,
    fold: Fold<S>,
  ): void {
    this.known.set(stream, fold, rows.shows ? { ttl: PERSONAL_KEPT_MS } : {});
  }

  private async at<S extends { accountId: number }, E extends DomainEvent>(
    rows: RowTable<S, E>,
    stream: string,
    revision: number,
  ): Promise<Fold<S>> {
    const last = this.known.get(stream) as Fold<S> | undefined;
    if (last?.revision === revision) return last;
    const from = last && last.revision < revision ? last : undefined;
    return this.fold(rows, { stream, revision }, from);
  }

  private async after<S extends { accountId: number }, E extends DomainEvent>(
    rows: RowTable<S, E>,
    event: StoredEvent,
    snapshots: Map<string, Fold<S>>,
    earlier: StoredEvent[],
  ): Promise<Fold<S>> {
    // A stream's name contains its aggregate, so a cached state is of the right type.
    const last = this.known.get(event.stream) as Fold<S> | undefined;
    if (event.revision === 0 || last?.revision === event.revision - 1) {
      return evolved(rows, event.revision === 0 ? undefined : last, [event]);
    }
    const snapshot = snapshots.get(event.stream);
    if (snapshot?.revision === event.revision) return snapshot;
    const from = last && last.revision < event.revision ? last : undefined;
    const next = from ? from.revision + 1 : 0;
    if (earlier[0]?.revision === next && earlier.length === event.revision - next) {
      return evolved(rows, from, [...earlier, event]);
    }
    return this.fold(rows, event, from);
  }

  /**
   * The events between the cached folds and the first event of each stream. After a pause these are a few events of
   * each of thousands of streams, too many to read stream by stream.
   */
  private async earlier(
    events: StoredEvent[],
    snapshots: Map<string, Fold<object>>,
  ): Promise<Map<string, StoredEvent[]>> {
    const refs: EventRef[] = [];
    const seen = new Set<string>();
    for (const { stream, revision } of events) {
      if (seen.has(stream)) continue;
      seen.add(stream);
      if (snapshots.get(stream)?.revision === revision) continue;
      const known = this.known.get(stream)?.revision ?? -1;
      const from = known < revision ? known + 1 : 0;
      if (revision - from > PAGE || refs.length + revision - from > AHEAD.most) continue;
      for (let one = from; one < revision; one++) refs.push({ stream, revision: one });
    }
    const read: StoredEvent[] = [];
    // Once enough has been read, the remaining streams are read one by one.
    for (let i = 0, bytes = 0; i < refs.length && bytes < AHEAD.bytes; i += AHEAD.atOnce) {
      const some = await this.store.readEvents(refs.slice(i, i + AHEAD.atOnce));
      for (const event of some) bytes += roughBytes(event);
      read.push(...some);
    }
    const byStream = new Map<string, StoredEvent[]>();
    for (const event of await this.keys.opened(read)) {
      const others = byStream.get(event.stream);
      if (others) others.push(event);
      else byStream.set(event.stream, [event]);
    }
    for (const list of byStream.values()) list.sort((a, b) => a.revision - b.revision);
    return byStream;
  }

  private async fold<S extends { accountId: number }, E extends DomainEvent>(
    rows: RowTable<S, E>,
    { stream, revision }: Pick<StoredEvent, 'stream' | 'revision'>,
    from: Fold<S> | undefined,
  ): Promise<Fold<S>> {
    let fold = from;
    let page: StoredEvent[] = [];
    const range = { from: fold ? fold.revision + 1 : 0, to: revision };
    for await (const event of this.store.readStream(stream, range)) {
      page.push(event);
      if (page.length < PAGE && event.revision < revision) continue;
      fold = evolved(rows, fold, await this.keys.opened(page));
      page = [];
    }
    if (fold?.revision !== revision) throw new Error(`${stream} ends before revision ${revision}`);
    return fold;
  }
}

function evolved<S extends { accountId: number }, E extends DomainEvent>(
  { aggregate }: RowTable<S, E>,
  from: Fold<S> | undefined,
  events: StoredEvent[],
): Fold<S> {
  let fold = from;
  for (const event of events) {
    const state = aggregate.evolve(fold?.state, recorded<E>(aggregate, event));
    fold = { state, revision: event.revision };
  }
  if (!fold) throw new Error('a fold needs an event');
  return fold;
}
