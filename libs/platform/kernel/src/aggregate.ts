/**
 * Identifies who gave a command. The contexts define the types of actors. `id` is the id in the table of that type; 0 for
 * the system itself.
 * @property name the login name of a command-line operator, who is in no table
 */
export type Actor = { type: string; id: number; name?: string };

/** Names the way by which a command came. The contexts define them. */
export type Channel = string;

/** Describes a request with an Idempotency-Key: its response is stored, so that a retry gets the same one. */
export type KeyedRequest = {
  /** HMAC of the caller, the request and the key. */
  readonly key: Buffer;
  /** Identifies the one request with this key that may respond; concurrent ones may not. */
  readonly holder: string;
  /** HTTP status of a successful response. */
  readonly status: number;
  /** Whether the response was stored in the commit that it reports. */
  isStored: boolean;
  /**
   * The person whom the request is about. The response is sealed with their key, so that erasing the person erases
   * it.
   */
  subjectId?: number | undefined;
  /** The people whom the response is about, where they are several. Erasing one of them erases it. */
  subjectIds?: readonly number[];
  /** Whether to release the key instead of saving the response, so that a repetition executes the request again. */
  releasesKey?: boolean;
  /** Extra fields of the stored response, which only a replay returns. */
  storedOnlyFields?: Readonly<Record<string, unknown>>;
};

/**
 * Identifies the request.
 * @property ipAddress personal: goes to the access log and the audit log, never into an event
 */
export type RequestSource = { requestId: string; ipAddress?: string };

/** Identifies the actor, the account and the channel. The caller has been granted access to `accountId`. */
type Origin = { accountId: number; actor: Actor; channel: Channel; requestId: string };

/** Describes the caller of a command. A dry run is decided like any other command, but nothing is written. */
export type CommandContext = Origin & RequestSource & { keyed?: KeyedRequest; dryRun?: boolean };

/** Metadata of every event. Times are ISO 8601 in UTC (CONV-29). */
export type EventMeta = Origin & {
  /** When it happened; an offline client may report it late. */
  occurredAt: string;
  /** When it was recorded. */
  recordedAt: string;
};

export type DomainEvent = { type: string; data: object };

export type RecordedEvent<E extends DomainEvent> = E & { id: string; meta: EventMeta };

/**
 * Converts an event's data from one version of its type to the next. Must be pure. Personal data arrives decrypted,
 * or as null.
 */
export type Upcast = (data: never) => object;

/**
 * Defines one kind of stream and how its events are applied to a state. `data.personal` of an event is stored sealed
 * with the key of its person (`Subjects`). It reads as null once that key is destroyed.
 */
export type Aggregate<S extends { accountId: number }, E extends DomainEvent> = {
  /** Streams are named `<name>-<id>`. */
  name: string;
  /**
   * Public names of its event types: the public event type if there is one, otherwise a dotted name of the same kind.
   * Names may be added, never changed.
   */
  names: Record<E['type'], string>;
  /** Raise it when `evolve` changes: older read models are then projected again. */
  projectionVersion: number;
  /**
   * Upcasters of each type whose shape has changed: from version 1 to 2, from 2 to 3 and so on. Events are written in
   * the latest version; a type without upcasters is at version 1.
   */
  upcasts?: { readonly [T in E['type']]?: readonly Upcast[] };
  evolve: (state: S | undefined, event: RecordedEvent<E>) => S;
  /** Returns by how much an event changes the record's balance; left out for records without one. */
  balanceChange?: (event: E) => number | null;
};

/** Parses the name of a stream: its aggregate, a hyphen and an id. */
export function parseStreamName(stream: string): { aggregate: string; id: number } {
  const dash = stream.lastIndexOf('-');
  return { aggregate: stream.slice(0, dash), id: Number(stream.slice(dash + 1)) };
}

/**
 * Lets the compiler prove that a switch is exhaustive. The message contains only the type, since the rest may be
 * personal.
 */
export function assertNever(value: never): never {
  const { type } = Object(value) as { type?: unknown };
  throw new Error(`unexpected ${typeof type === 'string' ? type : typeof value}`);
}

/**
 * Returns the state of a stream that has begun.
 * @throws when there is none: the stream is damaged, or was not read from its beginning
 */
export function requireState<S>(state: S | undefined): S {
  if (state === undefined) throw new Error('the stream does not begin with its creation event');
  return state;
}
