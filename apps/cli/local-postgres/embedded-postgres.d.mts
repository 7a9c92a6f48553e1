export interface EmbeddedPostgres {
  /** The full DATABASE_URL, with the password; its role is made by inkpad migrate. */
  url: string;
  /** The same for DATABASE_MIGRATION_URL. */
  ownerUrl: string;
  port: number;
  pid: number;
  /** Tells the process from a later one with the same number. */
  birth: string;
  /** Where the data lies; not always inside the data folder, see startPostgres. */
  dataPath: string;
  exited: Promise<{ code: number | null; signal: NodeJS.Signals | null; error: Error | null }>;
  /** Ends when no process of the server is left. "immediate" skips the last checkpoint. */
  stop(how?: { mode?: 'fast' | 'immediate'; hurry?: AbortSignal }): Promise<void>;
  /** For throw-away databases: stops the server and deletes its data, wherever that lies, and an emptied dataDir. */
  remove(): Promise<void>;
}

export interface StartPostgresOptions {
  dataDir: string;
  /** Gets the few lines worth showing to a person. */
  log?: (line: string) => void;
  /** This port and no other; without it the one used last, when it is still free. */
  port?: number;
  /** Server settings over the defaults, e.g. { fsync: 'off' }. */
  settings?: Record<string, string | number>;
  /** Stops the server when this process ends, however it ends; and does not keep it alive. */
  tie?: boolean;
  /** Gives up the start. */
  signal?: AbortSignal;
}

/**
 * Starts the PostgreSQL that npm brought along, with its data kept under dataDir; makes the
 * database on the first call. Refuses when a server already runs on the data.
 */
export function startPostgres(options: StartPostgresOptions): Promise<EmbeddedPostgres>;

/** Stops the server that an earlier, killed owner of dataDir left running; false: none was. */
export function stopLeftoverPostgres(dataDir: string): Promise<boolean>;
