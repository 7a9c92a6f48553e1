import type { EventMeta } from '#platform/kernel/aggregate.js';
import { InProgressError } from '#platform/kernel/errors.js';
import type { BatchSlots } from '#platform/database/batcher.js';
import type { Cap, CapKind } from './caps.js';
import type { Damage, DamageCounts, LogMeasures } from './log-measures.js';
import { isAfter, type Position } from './position.js';

export type { Cap, CapKind, Position };

export type Json = string | number | boolean | null | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };

/** The end of a stream: the revision and the hash (hex) of its last event. */
export type Head = { revision: number; hash: string };

/** The place of an event in its stream. */
export type EventRef = { stream: string; revision: number };

/** An event to be committed, with its personal data already sealed. */
export type NewEvent = {
  /** Random; the same when an append is repeated. */
  id: string;
  type: string;
  version: number;
  data: JsonObject;
  meta: EventMeta;
};

/** The part of a stored event that a projection needs. */
export type UnpositionedEvent = NewEvent & EventRef;

export type StoredEvent = UnpositionedEvent & {
  /** Hex; covers this event and, through the one before it, the whole stream so far. */
  hash: string;
  position: Position;
};

/** The aggregate's state after the last event of the write. */
export type ReadModelWrite = {
  table: string;
  id: number;
  projectionVersion: number;
  state: object;
  /** The person whose data the state shows. They are in plain text nowhere but in the row of the read model. */
  subjectId?: number;
};

export type Write = {
  stream: string;
  /** The head that the stream must have; null: the stream must not exist yet. */
  expected: Head | null;
  /** At least one. */
  events: NewEvent[];
  row?: ReadModelWrite;
  /** The inputs of its decision besides its stream and the writes before it (`EngineCallbacks.decideFollowUp`). */
  inputs?: Json;
  /** Only where the events are in the database (`EventStore.isInDatabase`). */
  precondition?: Precondition;
};

/**
 * A read model that a write was decided on, if it was not read just now. If it has changed, the commit is a conflict.
 */
export type Precondition = {
  table: string;
  /**
   * SQL for the object that must equal `expectedValues`, given SQL for the row's id and account; the same for the
   * whole table.
   */
  extraColumn: (id: string, account: string) => string;
  id: number;
  expectedValues: ExtraValues;
};

/** What a read model's `extraColumn` holds, by name. */
export type ExtraValues = Record<string, number | boolean>;

/** A value that only one stream of the account may hold. `value` is an HMAC, never the plain value. */
export type Claim = { kind: string; value: Buffer; stream: string };

/** The response to a request with an Idempotency-Key, stored with the events that it reports. */
export type SealedResponse = {
  key: Buffer;
  /** The one of the requests with the key that may save its response. */
  holder: string;
  /** The write that it belongs to. */
  stream: string;
  /** HTTP status. */
  status: number;
  /** Sealed. */
  body: Buffer;
};

/**
 * A person who is erased. `stream` is their own.
 * @property renewed the person stays: only their former key is destroyed (`PersonalKeys.renew`)
 */
export type Erasure = { subjectId: number; stream: string; renewed?: true };

/** SQL that runs in the transaction of a commit. Its values survive JSON, because a commit may be stored as such. */
export type SideEffect = { text: string; values: Json[] };

export type Commit = {
  accountId: number;
  writes: Write[];
  claims?: Claim[];
  /** Claims that their stream gives up. */
  releases?: Claim[];
  /** At most one per commit, because transactions that wait for two locks could deadlock. */
  cap?: Cap | undefined;
  responses?: SealedResponse[];
  /** Their keys are destroyed and their claims freed with this commit. */
  erasures?: Erasure[];
  /** Statements that run after the writes. Whenever the events are written, these have run or will run. */
  sideEffects?: SideEffect[];
};

/** Reports that a stream is not where the commit expected it; nothing was written. */
export class ConflictError extends Error {
  constructor() {
    super('the stream has moved');
  }
}

/** Reports that another stream holds one of the claims; nothing was written. */
export class ClaimTakenError extends Error {
  constructor(readonly kinds: string[]) {
    super(`taken: ${kinds.join(', ')}`);
  }
}

/** Reports that another request has taken over an Idempotency-Key; nothing was written. */
export class KeyTakenOverError extends InProgressError {
  /** @param holders those that have lost their keys */
  constructor(readonly holders: string[]) {
    super({ cause: new Error('another request has taken over') });
  }
}

/**
 * What an engine calls where a commit is not one transaction. Another process may then write to a later stream of it after
 * the first append, and read models are written after their events.
 */
export type EngineCallbacks = {
  /**
   * Decides a later write again: its events follow from the earlier writes and from the current state of its stream.
   * @param earlierWrites the writes before it, as they were appended
   */
  decideFollowUp: (write: Write, earlierWrites: Write[]) => Promise<Write>;
  /** Tells whether it can be after these events of others. Otherwise the commit has to start anew. */
  canFollow: (stream: string, others: StoredEvent[]) => boolean;
  /**
   * Finds the streams whose read models are older than these events.
   * @param read how to query the database, for a caller that holds a connection already
   */
  findBehind: (events: EventRef[], read?: ReadIds) => Promise<string[]>;
  /** Brings the read model of a stream up to date. */
  catchUp: (stream: string) => Promise<void>;
};

export type ReadIds = (statement: {
  name: string;
  text: string;
  values: unknown[];
}) => Promise<{ id: number }[]>;

export type Subscriber = {
  /** Exclusive: events after this one are delivered. */
  after: Position;
  batch: number;
  /**
   * Handles a batch, and is awaited: the next batch comes when this one is done. A rejection ends the subscription.
   * `position` is where to resume; it also advances, with no events, past those that are filtered out.
   */
  onEvents: (events: StoredEvent[], position: Position) => Promise<void>;
  signal: AbortSignal;
};

/** The id and place of an event, and when it was recorded, in ms since 1970 by its writer's clock. */
export type EventTime = EventRef & { id: string; position: Position; recordedAt: number };

/** Maximum number of events of a stream that `readStreams` yields at once. */
export const STREAM_BATCH_SIZE = 1_000;
/** By default the maximum number of events of a page: decrypting them must not block a process for long. */
const PAGE_SIZE = 200;

/** Maximum number of streams that `findRevisions` reads at the same time. */
const REVISIONS_AT_ONCE = 16;

export const BEGINNING: Position = { commit: 0n, prepare: 0n };

/**
 * Defines the port to the event store. It is an abstract class so that it is the injection token as well; every adapter
 * has to pass `event-store.contract.ts`.
 */
export abstract class EventStore {
  /**
   * Whether the events are in the database of the read models, so that one transaction writes both and one statement sees
   * both.
   */
  readonly isInDatabase: boolean = true;

  /**
   * The slots that writes and loads of read models share, where read models are written in statements of their own.
   * They wait for one another, in larger groups.
   */
  readonly readModelSlots: BatchSlots | undefined;

  /** Set by the pipeline. */
  callbacks: EngineCallbacks | undefined;

  /** Checks the database against a log that is not in it: once it can be read, and before the first change. */
  startCheck: (() => Promise<void>) | undefined;

  /** Whether the engine responds and may be used, where it is not the database itself. */
  get isReachable(): boolean {
    return true;
  }

  /** Says why changes that wait for others to be written take too long. */
  describeOverload(): string {
    return 'The database is too busy';
  }

  /**
   * Writes everything or nothing. New streams need new ids, so that nobody else can be writing them. Where this is not
   * one transaction, readers may see the first write before the others, and the others may be decided again
   * (`EngineCallbacks`); then their heads differ from those returned. Repeats itself with the same event ids while the
   * outcome is unknown.
   * @returns the new head of each write, in order
   * @throws ConflictError, ClaimTakenError, KeyTakenOverError, CapReachedError: nothing was written
   * @throws UnavailableError: nothing was written
   * @throws UnknownOutcomeError: not settled within 30 s
   */
  abstract commit(commit: Commit): Promise<Head[]>;

  /**
   * Reads a stream from a revision (inclusive; by default the first or, backwards, the last). A missing stream has no
   * events.
   * @throws DamagedHistoryError when somebody has deleted events from that revision on; not backwards
   */
  abstract readStream(
    stream: string,
    options?: { from?: number; to?: number; direction?: 'forwards' | 'backwards' },
  ): AsyncIterable<StoredEvent>;

  /** Tells whether a stream has never had an event, not even one of somebody else on a shared server. */
  async isUnused(stream: string): Promise<boolean> {
    for await (const _ of this.readStream(stream, { to: 0 })) return false;
    return true;
  }

  /** Tells whether a read model at this revision shows its whole stream. */
  async isProjected(_stream: string, _revision: number): Promise<boolean> {
    return true;
  }

  /**
   * Waits until the read models show these events. Writes those whose writer does not.
   * @throws what keeps a read model behind
   */
  async waitUntilProjected(_events: StoredEvent[]): Promise<void> {}

  /**
   * Waits until every commit to these streams is written as a whole, except for those that wait for a repair.
   * @throws UnavailableError
   */
  async waitUntilComplete(_streams: string[]): Promise<void> {}

  /** Does what the engine needs done besides commits, until the signal aborts. Several processes may do it. */
  async maintain(_signal: AbortSignal): Promise<void> {}

  /** Checks that no commit of these streams waits for a repair. @throws DamagedHistoryError */
  async assertNoneWaitsForRepair(_streams: string[]): Promise<void> {}

  /** Describes what others have done to our streams, as far as this process has read the log. */
  async describeDamage(): Promise<Damage> {
    return { differences: [], notes: [] };
  }

  /** Measures what operators watch of the log. */
  abstract measure(): Promise<LogMeasures>;

  countDamage(): DamageCounts {
    return { foreignStreams: 0, trimmedStreams: 0 };
  }

  /**
   * Reads several streams, each from its beginning up to a revision (inclusive). The events of a stream come in order
   * and contiguously, in one batch or several.
   */
  async *readStreams(ranges: { stream: string; to: number }[]): AsyncIterable<StoredEvent[]> {
    for (const { stream, to } of ranges) yield* this.readPages(stream, { to }, STREAM_BATCH_SIZE);
  }

  /** Reads a stream from a revision to another (inclusive), for code that works on many of its events at once. */
  async *readPages(
    stream: string,
    range?: { from?: number; to?: number },
    size = PAGE_SIZE,
  ): AsyncIterable<StoredEvent[]> {
    let page: StoredEvent[] = [];
    for await (const event of this.readStream(stream, range)) {
      page.push(event);
      if (page.length < size) continue;
      yield page;
      page = [];
    }
    if (page.length > 0) yield page;
  }

  /**
   * Reads several streams, each up to a position of the log (inclusive), for a projection. The events of a stream come
   * in order, in one batch or several.
   */
  abstract readFacts(streams: string[], until: Position): AsyncIterable<UnpositionedEvent[]>;

  /**
   * Finds the revision that each stream had at a position of the log (inclusive). Leaves out streams that had no event
   * yet.
   */
  async findRevisions(streams: string[], until: Position): Promise<Map<string, number>> {
    const revisions = new Map<string, number>();
    for (let i = 0; i < streams.length; i += REVISIONS_AT_ONCE) {
      await Promise.all(
        streams.slice(i, i + REVISIONS_AT_ONCE).map(async (stream) => {
          for await (const event of this.readStream(stream, { direction: 'backwards' })) {
            if (isAfter(event.position, until)) continue;
            revisions.set(stream, event.revision);
            return;
          }
          // Either it had none yet, or somebody has deleted them.
          await this.isUnused(stream);
        }),
      );
    }
    return revisions;
  }

  /** Reads single events, in no particular order. Leaves out those that do not exist. */
  abstract readEvents(refs: EventRef[]): Promise<StoredEvent[]>;

  /** Finds the event with this id in this stream. Recent events are found soonest. */
  async findEvent(stream: string, id: string): Promise<StoredEvent | undefined> {
    for await (const event of this.readStream(stream, { direction: 'backwards' })) {
      if (event.id === id) return event;
    }
    return undefined;
  }

  /** Reads the next events of the log in order. Returns no event that an unfinished commit could still precede. */
  abstract readAll(after: Position, limit: number): Promise<StoredEvent[]>;

  /**
   * Reads the next events of the log up to a head (inclusive), even those that `readAll` still holds back. Every append
   * that was acknowledged before the head was read is among them.
   */
  async readUntil(head: Position, after: Position, limit: number): Promise<StoredEvent[]> {
    const events = await this.readAll(after, limit);
    return events.filter(({ position }) => !isAfter(position, head));
  }

  /**
   * Reads when the next events of the log were recorded: like `readAll`, for callers that need nothing else of them.
   */
  async readMoments(after: Position, limit: number): Promise<EventTime[]> {
    const events = await this.readAll(after, limit);
    return events.map(({ id, stream, revision, position, meta }) => ({
      id,
      stream,
      revision,
      position,
      recordedAt: Date.parse(meta.recordedAt),
    }));
  }

  /**
   * Waits until `readAll` reaches every append that was acknowledged before the head was read.
   * @returns false: not in time
   */
  async reaches(_head: Position, _withinMs: number): Promise<boolean> {
    return true;
  }

  /** Reads a position before every append that begins after this call has returned. */
  abstract head(): Promise<Position>;

  /** Reads a position before every append that is not readable yet when this is called. */
  findSettledPosition(): Promise<Position> {
    return this.head();
  }

  /** Follows the log until the signal aborts. Delivers in order, each event at least once. */
  abstract subscribe(subscriber: Subscriber): Promise<void>;
}
