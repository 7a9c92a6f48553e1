/**
 * Who acts. `id` is the id in the table of that type; 0 for the system itself.
 * @property name the login name of a command line, who is in no table
 */
export type Actor = { type: 'token' | 'user' | 'customer' | 'system'; id: number; name?: string };

export type Channel = 'api' | 'pos' | 'staff' | 'owner' | 'poster' | 'import' | 'cli' | 'system';

/** A request that came with an Idempotency-Key: its response is stored, or the retry is a new request. */
export type KeyedRequest = {
  /** HMAC of who asked for what under which key. */
  readonly key: Buffer;
  /** Of the several requests with this key, the one that may answer. */
  readonly holder: string;
  /** HTTP status of its success. */
  readonly status: number;
  /** The response was stored in the commit that it reports. */
  isStored: boolean;
  /** The person whom the request is about: the response is stored sealed with their key, so that it goes with them. */
  subjectId?: number | undefined;
  /** Fields that the stored response has beside those of the response, for whoever sends the request again. */
  storedOnlyFields?: Readonly<Record<string, unknown>>;
};

/** Where a request comes from. @property ipAddress personal: for the access log and the audit log, and in no event */
export type RequestSource = { requestId: string; ipAddress?: string };

/** Who acts in which account, through which channel. `accountId` is the one that the caller was let into. */
type Origin = { accountId: number; actor: Actor; channel: Channel; requestId: string };

/** Who calls. A dry run is decided and answered like any other command, but nothing is written. */
export type CommandContext = Origin & RequestSource & { keyed?: KeyedRequest; dryRun?: boolean };

/** Part of every event (contract section 11). Times are ISO 8601, UTC. */
export type EventMeta = Origin & {
  /** When it happened, which an offline till may report late. */
  occurredAt: string;
  /** When it was written. */
  recordedAt: string;
};

export type DomainEvent = { type: string; data: object };

export type Recorded<E extends DomainEvent> = E & { id: string; meta: EventMeta };

/**
 * Makes the data of an event, as one version of its type had it, into those of the next version. Pure. Personal data
 * come decrypted, or null.
 */
export type Upcast = (data: never) => object;

/**
 * One kind of stream and the fold that turns it into state. `data.personal` of an event, where there
 * is one, is stored sealed with the key of its person (`Subjects`) and reads as null once that key is gone.
 */
export type Aggregate<S extends { accountId: number }, E extends DomainEvent> = {
  /** Streams are called `<name>-<id>`. */
  name: string;
  /**
   * What each of its event types is called to the outside: the public event type where there is one, otherwise a dotted
   * name of the same kind. Names may be added, never changed.
   */
  names: Record<E['type'], string>;
  /** Raise it when `evolve` changes: rows of an older fold are folded anew. */
  projectionVersion: number;
  /**
   * For each type whose shape has changed: the step from its version 1 to 2, that from 2 to 3 and so on. Events are
   * written in the last version; a type without steps is at version 1.
   */
  upcasts?: { readonly [T in E['type']]?: readonly Upcast[] };
  evolve: (state: S | undefined, event: Recorded<E>) => S;
  /** By how much an event changes the record's balance; left out where records have none. */
  balanceChange?: (event: E) => number | null;
};

/**
 * Lets the compiler prove that a switch is exhaustive. The message has only the type: the rest may be
 * personal.
 */
export function assertNever(value: never): never {
  const { type } = Object(value) as { type?: unknown };
  throw new Error(`unexpected ${typeof type === 'string' ? type : typeof value}`);
}

/**
 * @throws when an event other than the first has no state: the stream is damaged, or was not read from its
 *   beginning
 */
export function requireState<S>(state: S | undefined): S {
  if (state === undefined) throw new Error('the stream does not begin with its creation event');
  return state;
}
