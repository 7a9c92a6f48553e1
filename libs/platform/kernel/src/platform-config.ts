/** The settings that the platform uses. `Config` adds the settings of the product. */
export abstract class PlatformConfig {
  abstract readonly isProduction: boolean;
  abstract readonly host: string;
  abstract readonly port: number;
  /** The host on which operators reach metrics and the dispatcher's health. */
  abstract readonly monitoringHost: string;
  /** The dispatcher's; the api serves health checks on its own port. */
  abstract readonly healthPort: number;
  /** Absolute. */
  abstract readonly dataDir: string;
  /** Without a trailing slash. */
  abstract readonly publicUrl: string;
  /** For the role of the processes, which may only add to the history. */
  abstract readonly databaseUrl: string;
  /** For the role that owns the tables; the same URL when there is only one role. */
  abstract readonly databaseMigrationUrl: string;
  /** A standby for reports; null: there is none. */
  abstract readonly databaseReadUrl: string | null;
  abstract readonly databasePool: number;
  /** How long a start waits for a database that cannot be reached. */
  abstract readonly startWaitSeconds: number;
  /** How long the api goes on serving after a stop signal. */
  abstract readonly shutdownDelaySeconds: number;
  /** Null: events are kept in PostgreSQL. */
  abstract readonly eventStoreUrl: string | null;
  /** In front of every stream's name, for several services in one EventStoreDB. */
  abstract readonly eventStoreStreamPrefix: string;
  /** Seals everything from now on, except while it is still waiting to be rotated in. */
  abstract readonly masterKey: Buffer;
  /** The former key, while a rotation is in progress. */
  abstract readonly masterKeyPrevious: Buffer | null;
  /** Null when MASTER_KEY is set. `isNew`: the file was created just now. */
  abstract readonly masterKeyFile: { path: string; isNew: boolean } | null;
  abstract readonly rateLimitPerMinute: number;
  /** Requests to the API for one account, with all tokens together. */
  abstract readonly accountRateLimitPerMinute: number;
  /** Per IP address, outside the API. */
  abstract readonly pageRateLimitPerMinute: number;
  abstract readonly trustProxyHops: number;
  /** Whether browsers use https for the subdomains of the public URL's host as well. */
  abstract readonly hstsIncludesSubdomains: boolean;
  /** Null: each process counts for itself. */
  abstract readonly redisUrl: string | null;
  /** Origins whose scripts may read responses; `*`: all. */
  abstract readonly corsOrigins: string[];
  /** Null until announced. At least twelve months lie between the two. */
  abstract readonly v1: { deprecatedAt: Date | null; sunsetAt: Date | null };
  /** Null: each process has its own of METRICS_PORTS. */
  abstract readonly metricsPort: number | null;
  abstract readonly checkpoints: {
    /** A signer key; null: see `loadCheckpointSigner`. */
    key: string | null;
    /** Absolute; null: they are not written to files. */
    dir: string | null;
    /** The address that gets one by e-mail each day. */
    mailTo: string | null;
  };
  /** Where traces go, without a trailing slash; null: nowhere. */
  abstract readonly otlpEndpoint: string | null;
  abstract readonly logLevel: 'silent' | 'fatal' | 'error' | 'warn' | 'info' | 'debug';
  abstract readonly logFormat: 'json' | 'text';
}
