import type { EventMeta } from '#kernel/aggregate.js';
import type { BatchSlots } from '#database/batcher.js';
import { isAfter, type Position } from './position.js';

export type { Position };

export type Json = string | number | boolean | null | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };

/** Where a stream stands: the revision and the hash (hex) of its last event. */
export type Head = { revision: number; hash: string };

/** The place of an event in its stream. */
export type EventRef = { stream: string; revision: number };

/** An event as it goes into a commit, with its personal data already sealed. */
export type NewEvent = {
  /** Random; the same when an append is repeated. */
  id: string;
  type: string;
  version: number;
  data: JsonObject;
  meta: EventMeta;
};

/** The part of a stored event that a projection needs. */
export type Fact = NewEvent & EventRef;

export type StoredEvent = Fact & {
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
  /** The person whose data the state shows; it is stored in clear nowhere but in its row. */
  subjectId?: number;
};

export type Write = {
  stream: string;
  /** The head that the stream must have; null: the stream must not exist yet. */
  expected: Head | null;
  /** At least one. */
  events: NewEvent[];
  row?: ReadModelWrite;
  /** What deciding this write again would need, besides its stream and the writes before it (`ConflictResolver`). */
  decisionContext?: Json;
  /** Where `readModelsMayLag` there must be none. */
  precondition?: Precondition;
};

/** What a write was decided on besides its stream, if that was not read just now. Otherwise it is a conflict. */
export type Precondition = {
  table: string;
  /** SQL for the number that must be as it was `seen`, over SQL for the row's id and account; the same for the whole table. */
  extraColumn: (id: string, account: string) => string;
  id: number;
  expectedValue: number;
};

/** A value that only one stream of the account may hold. `value` is an HMAC, never the plain value. */
export type Claim = { kind: string; value: Buffer; stream: string };

/** Defines which records a cap counts. Each aggregate defines its own, next to its table. */
export type CapKind = {
  table: string;
  /** The column with the id of the owner. */
  ownerColumn: string;
  /** SQL over `r`, a row: whether it counts. By default every row does. */
  isCounted?: string;
  /** SQL over `$1`, the owner: whether it takes no new records, whatever their number. */
  isClosed?: string;
  /** Completes the refusal "The number of … has reached its limit". */
  label: string;
  resolution: string;
};

/** A limit on how many records of a kind an owner may have, checked when a new one is created. */
export type Cap = {
  kind: CapKind;
  owner: number;
  /** Of the new record. 0: the commit closes the owner, and no new record may begin meanwhile. */
  id: number;
  max: number;
};

/** The response to a request with an Idempotency-Key, stored with the events that it tells of. */
export type SealedResponse = {
  key: Buffer;
  /** Which of the requests with the key may answer. */
  holder: string;
  /** The write that it belongs to. */
  stream: string;
  /** HTTP status. */
  status: number;
  /** Sealed. */
  body: Buffer;
};

/**
 * Somebody who is erased. `stream` is their own.
 * @property renewed they are not: only their former key is destroyed (`PersonalKeys.renew`)
 */
export type Erasure = { subjectId: number; stream: string; renewed?: true };

/** SQL that runs in the transaction of a commit. Its values survive JSON, because a commit may wait as such. */
export type SideEffect = { text: string; values: Json[] };

export type Commit = {
  accountId: number;
  writes: Write[];
  claims?: Claim[];
  /** Claims that their holder gives up. */
  releases?: Claim[];
  /** At most one per commit, because transactions that wait for two locks could deadlock. */
  cap?: Cap | undefined;
  responses?: SealedResponse[];
  /** Their keys are destroyed and their claims freed with this commit. */
  erasures?: Erasure[];
  /** Run after the writes. They must have happened whenever the events have. */
  sideEffects?: SideEffect[];
};

/** A stream is not where the commit expected it; nothing was written. */
export class ConflictError extends Error {
  constructor() {
    super('the stream has moved');
  }
}

/** Another stream holds one of the claims; nothing was written. */
export class ClaimTakenError extends Error {
  constructor(readonly kinds: string[]) {
    super(`taken: ${kinds.join(', ')}`);
  }
}

/** Another request has taken over an Idempotency-Key; nothing was written. */
export class KeyTakenOverError extends Error {
  /** @param holders those that have lost their keys */
  constructor(readonly holders: string[]) {
    super('another request with this Idempotency-Key has taken over');
  }
}

/**
 * Where a commit to several streams is not one transaction, somebody else may write to a later stream after the first
 * append. What the commit does there then follows from the earlier writes and from where that stream is now.
 */
export type ConflictResolver = {
  /** @param earlierWrites the writes before it, as they were appended */
  redecide: (write: Write, earlierWrites: Write[]) => Promise<Write>;
  /** Whether it can be, once somebody else has written these to its stream, or the commit has to start anew. */
  commutesWith: (stream: string, others: StoredEvent[]) => boolean;
  /** Brings the row of a stream up to date. */
  catchUp: (stream: string) => Promise<void>;
};

export type Subscriber = {
  /** Exclusive: events after this one are delivered. */
  after: Position;
  batch: number;
  /**
   * Awaited: the next batch comes when this one is done. A rejection ends the subscription. `position` is
   * where to resume; it also advances, with no events, past those that are filtered out.
   */
  onEvents: (events: StoredEvent[], position: Position) => Promise<void>;
  signal: AbortSignal;
};

/**
 * An event of which only id and place are known, and when it was recorded, in ms since 1970, by its writer's clock.
 */
export type Moment = EventRef & { id: string; position: Position; recordedAt: number };

/** How many events of a stream `readStreams` yields at once, at most. */
export const STREAM_BATCH_SIZE = 1_000;

export const BEGINNING: Position = { commit: 0n, prepare: 0n };

/**
 * The port to the event store. An abstract class, so that it is the injection token as well;
 * `event-store.contract.ts` is what every adapter has to pass.
 */
export abstract class EventStore {
  /**
   * Whether a row can be behind its stream, because they are not written in one transaction. A refusal must
   * then be decided on the stream itself.
   */
  abstract readonly readModelsMayLag: boolean;

  /** Where rows are written in statements of their own: these and loads of rows take turns, in larger groups. */
  readonly readModelLanes: BatchSlots | undefined;

  /** Needed by an engine that cannot write several existing streams in one transaction. */
  conflictResolver: ConflictResolver | undefined;

  /**
   * Writes all of it or nothing and returns each write's new head, in order. New streams need an id of their own, so
   * that nobody else can be writing them. Where this is not one transaction, readers may see the first write before the
   * others, and what the others write may be decided again (`ConflictResolver`); then their heads are not those returned.
   * Repeats itself with the same event ids while the outcome is unknown.
   * @throws ConflictError, ClaimTakenError, KeyTakenOverError, CapReachedError: nothing was written
   * @throws UnavailableError: nothing was written
   * @throws UnknownOutcomeError: not settled within 30 s
   */
  abstract commit(commit: Commit): Promise<Head[]>;

  /** From a revision (inclusive; default the first or, backwards, the last). No stream: no events. */
  abstract readStream(
    stream: string,
    options?: { from?: number; to?: number; direction?: 'forwards' | 'backwards' },
  ): AsyncIterable<StoredEvent>;

  /**
   * Several streams, each from its beginning up to a revision (inclusive). The events of a stream come in order and
   * contiguously, in one batch or several.
   */
  async *readStreams(ranges: { stream: string; to: number }[]): AsyncIterable<StoredEvent[]> {
    for (const { stream, to } of ranges) {
      let batch: StoredEvent[] = [];
      for await (const event of this.readStream(stream, { to })) {
        batch.push(event);
        if (batch.length < STREAM_BATCH_SIZE) continue;
        yield batch;
        batch = [];
      }
      if (batch.length > 0) yield batch;
    }
  }

  /**
   * Several streams, each up to a position of the log (inclusive), to be projected. The events of a stream come in order,
   * in one batch or several.
   */
  async *readFacts(streams: string[], until: Position): AsyncIterable<Fact[]> {
    for (const stream of streams) {
      let batch: Fact[] = [];
      for await (const event of this.readStream(stream)) {
        if (isAfter(event.position, until)) break;
        batch.push(event);
        if (batch.length < STREAM_BATCH_SIZE) continue;
        yield batch;
        batch = [];
      }
      if (batch.length > 0) yield batch;
    }
  }

  /** Single events, in no particular order; those that do not exist are left out. */
  abstract readEvents(refs: EventRef[]): Promise<StoredEvent[]>;

  /** The event with this id, if it is in this stream. Recent ones are found soonest. */
  async findEvent(stream: string, id: string): Promise<StoredEvent | undefined> {
    for await (const event of this.readStream(stream, { direction: 'backwards' })) {
      if (event.id === id) return event;
    }
    return undefined;
  }

  /** The next events of the log in order; never one that an unfinished commit could still precede. */
  abstract readAll(after: Position, limit: number): Promise<StoredEvent[]>;

  /**
   * The next events of the log up to a head (inclusive), even those that `readAll` still holds back: every append that
   * was acknowledged before the head was read is among them.
   */
  async readUntil(head: Position, after: Position, limit: number): Promise<StoredEvent[]> {
    const events = await this.readAll(after, limit);
    return events.filter(({ position }) => !isAfter(position, head));
  }

  /** When the next events of the log were recorded: like `readAll`, for when nothing else of them is needed. */
  async readMoments(after: Position, limit: number): Promise<Moment[]> {
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

  /** Every append begun after this call has returned sorts behind the position that it gives. */
  abstract head(): Promise<Position>;

  /** Every append that is not readable yet when this is called sorts behind the position that it gives. */
  settled(): Promise<Position> {
    return this.head();
  }

  /** @throws when the engine does not answer in time */
  abstract ping(withinMs: number): Promise<void>;

  /** Follows the log until the signal aborts. Delivers in order, each event at least once. */
  abstract subscribe(subscriber: Subscriber): Promise<void>;
}
