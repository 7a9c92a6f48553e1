export type EventStoreDbOptions = {
  /** 0, the default: any that is free. */
  port?: number;
  /** File to keep the log in; without it the log is gone with the server. */
  log?: string;
  /** Name to password. Needs `tls`: the client sends credentials over TLS only. */
  users?: Record<string, string>;
  tls?: { cert: Buffer; key: Buffer };
  /** Bytes; default 1 MiB. */
  maxAppendSize?: number;
  /** After this long the server responds to an append with a timeout; default 2000. */
  writeTimeoutMs?: number;
  /** How many ids `any` and `stream_exists` remember; default 256. */
  recentIds?: number;
  /** What `/info` says; default 26.0.3. From 25 on, responses are compressed for clients that accept it. */
  version?: string;
  /** How long appends take; by default no time at all. */
  delays?: Delay[];
  /** How long reads and subscriptions of $all take to look at 1,000 events; by default no time at all. */
  searchMs?: number;
  /** Whether the node waits for `electLeader` before it serves. */
  leaderless?: boolean;
};

/** With so many appends under way, one takes from the shorter to the longer time. */
export type Delay = { appends: number; ms: [shortest: number, longest: number] };

export type Faults = {
  /** The next appends fail before anything is written. */
  failAppends(count: number, how?: 'unavailable' | 'not-ready' | 'timeout'): void;
  /** The next successful appends are written, but their responses are lost. */
  loseResponses(count: number, how?: 'drop' | 'silence' | 'cancel'): void;
  /** The next appends get their response twice. */
  doubleResponses(count: number): void;
  /** The next appends are refused by a node that names another one as leader (default: itself). */
  notLeader(count: number, leader?: { host?: string; port?: number }): void;
  /** The next reads and subscriptions fail after this many events. */
  cutReads(count: number, afterEvents?: number): void;
  /** Appends are written at once but confirmed late; reads start late. 0 ends the delay. */
  delayResponses(ms: number): void;
  /**
   * Appends are written at once but confirmed when the result is called; reads start then. `clear` ends this for later
   * calls alone.
   */
  holdResponses(kind: 'append' | 'read'): () => void;
  /** How long appends take from now on. */
  setDelays(delays: Delay[]): void;
  dropSubscriptions(how?: 'cancelled' | 'unavailable' | 'too-slow' | 'connection'): void;
  /** Until a leader is elected, the node responds to `/health/live`, and that it is not ready to all else. */
  loseLeader(): void;
  electLeader(): void;
  /** Destroys the events that streams hide: deleted ones, and those beyond `$maxCount`, `$maxAge` and `$tb`. */
  scavenge(): void;
  /** Drops all planned faults, and the delay. */
  clear(): void;
};

export type EventStoreDb = {
  readonly port: number;
  readonly connectionString: string;
  /** Events written for clients since the start, not counting repetitions and system events. */
  readonly appended: number;
  /** Currently open subscriptions. */
  readonly subscriptions: number;
  /** How often clients have asked for something since the start. */
  readonly requestCounts: {
    readonly appends: number;
    readonly streamReads: number;
    /** Of $all. */
    readonly logReads: number;
    readonly subscriptions: number;
    /** For features, gossip and over HTTP. */
    readonly others: number;
    /** That reads and subscriptions were sent. */
    readonly events: number;
    /** Of the log that reads and subscriptions of $all looked at, also those that a filter left out. */
    readonly searched: number;
  };
  readonly fault: Faults;
  /** Cuts every connection and refuses new ones. */
  stopListening(): Promise<void>;
  /** On the same port. */
  listenAgain(): Promise<void>;
  stop(): Promise<void>;
};

export function startEventStoreDb(options?: EventStoreDbOptions): Promise<EventStoreDb>;
