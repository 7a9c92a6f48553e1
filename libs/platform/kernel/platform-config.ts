import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { isLoopbackHost } from './absolute-url.js';
import { ConfigError } from './config-error.js';
import { loadKeyFile } from './key-file.js';
import type { PlatformSettings } from './platform-settings.js';

/** Processes that need less than all settings. */
export type SettingsScope = 'api' | 'migrate';

/** Holds the settings where the fields of PlatformConfig are computed from them. */
abstract class ReadSettings<S extends PlatformSettings> {
  /** @param env validated by `readConfig` */
  constructor(
    protected readonly env: S,
    protected readonly scope?: SettingsScope,
  ) {}
}

/** The settings that the platform uses. `Config` adds the settings of the product. */
export abstract class PlatformConfig<
  S extends PlatformSettings = PlatformSettings,
> extends ReadSettings<S> {
  readonly isProduction = this.env.NODE_ENV === 'production';
  readonly host = this.env.HOST;
  readonly port = this.env.PORT;
  readonly monitoringHost = this.env.MONITORING_HOST;
  /** The dispatcher's; the api serves health checks on its own port. */
  readonly healthPort = this.env.HEALTH_PORT;
  /** Null: each process has its own of METRICS_PORTS. */
  readonly metricsPort = this.env.METRICS_PORT ?? null;
  /** Absolute. */
  readonly dataDir = resolve(this.env.DATA_DIR);
  private readonly database: DatabaseUrls = this.env.DATABASE_URL
    ? { url: this.env.DATABASE_URL }
    : readRunFile(this.dataDir);
  /** Without a trailing slash. */
  readonly publicUrl = trimSlashes(
    this.env.PUBLIC_URL ?? this.database.publicUrl ?? `http://localhost:${this.env.PORT}`,
  );
  /** Whether the public URL can be opened on this machine only. */
  readonly isOnlyLocal = isLoopbackHost(new URL(this.publicUrl).hostname);
  /** For the role of the processes, which may only add to the history. */
  readonly databaseUrl = this.database.url;
  /** For the role that owns the tables; the same URL when there is only one role. */
  readonly databaseMigrationUrl =
    this.env.DATABASE_MIGRATION_URL ?? this.database.ownerUrl ?? this.database.url;
  /** A standby for reports; null: the primary serves them. */
  readonly databaseReadUrl = this.env.DATABASE_READ_URL ?? null;
  readonly databasePool = this.env.DATABASE_POOL;
  readonly startWaitSeconds = this.env.START_WAIT_SECONDS;
  readonly shutdownDelaySeconds = this.env.SHUTDOWN_DELAY_SECONDS;
  /** Null: events are kept in PostgreSQL. */
  readonly eventStoreUrl = this.env.EVENT_STORE_URL ?? null;
  readonly eventStoreStreamPrefix = this.env.EVENT_STORE_STREAM_PREFIX;
  private readonly sealing = readMasterKey(
    this.env.MASTER_KEY,
    this.isProduction,
    this.dataDir,
    this.scope,
  );
  /** Seals everything from now on, except while it is still waiting to be rotated in. */
  readonly masterKey = this.sealing.key;
  /** Null when MASTER_KEY is set. `isNew`: the file was created just now. */
  readonly masterKeyFile = this.sealing.file;
  /** The former key, while a rotation is in progress. */
  readonly masterKeyPrevious =
    this.env.MASTER_KEY_PREVIOUS === undefined
      ? null
      : Buffer.from(this.env.MASTER_KEY_PREVIOUS, 'base64');
  /** Per token, those of the admin API included, and per IP address without one. */
  readonly rateLimitPerMinute = this.env.RATE_LIMIT_PER_MINUTE;
  /** Requests to the API for one account, with all tokens together. */
  abstract readonly accountRateLimitPerMinute: number;
  /** Per IP address, outside the API. */
  readonly pageRateLimitPerMinute = this.env.PAGE_RATE_LIMIT_PER_MINUTE;
  readonly trustProxyHops = this.env.TRUST_PROXY_HOPS;
  readonly hstsIncludesSubdomains = this.env.HSTS_INCLUDE_SUBDOMAINS;
  /** Null: each process counts for itself. */
  readonly redisUrl = this.env.REDIS_URL ?? null;
  /** Origins whose scripts may read responses; `*`: all. */
  readonly corsOrigins = this.env.CORS_ORIGINS;
  /** Null until announced. At least twelve months lie between the two. */
  readonly v1 = {
    deprecatedAt: this.env.API_V1_DEPRECATION_DATE ?? null,
    sunsetAt: this.env.API_V1_SUNSET_DATE ?? null,
  };
  readonly checkpoints = {
    /** A signer key; null: see `loadCheckpointSigner`. */
    key: this.env.CHECKPOINT_KEY ?? null,
    /** Absolute; null: they are not written to files. */
    dir: this.findCheckpointDir(),
    /** The address that gets one by e-mail each day. */
    mailTo: this.env.CHECKPOINT_MAIL_TO ?? null,
  };
  /** Where traces go, without a trailing slash; null: nowhere. */
  readonly otlpEndpoint =
    this.env.OTEL_EXPORTER_OTLP_ENDPOINT === undefined
      ? null
      : trimSlashes(this.env.OTEL_EXPORTER_OTLP_ENDPOINT);
  readonly logLevel = this.env.LOG_LEVEL;
  readonly logFormat = this.env.LOG_FORMAT ?? (this.isProduction ? 'json' : 'text');

  private findCheckpointDir(): string | null {
    if (this.env.CHECKPOINT_DIR !== undefined) return resolve(this.env.CHECKPOINT_DIR);
    return this.isProduction ? null : join(this.dataDir, 'checkpoints');
  }
}

export function trimSlashes(url: string): string {
  return url.replace(/\/+$/, '');
}

type DatabaseUrls = { url: string; ownerUrl?: string; publicUrl?: string };

/** Reads the URLs that `npm start` writes to run.json, for tools started alongside it. */
function readRunFile(dataDir: string): DatabaseUrls {
  const file = join(dataDir, 'run.json');
  try {
    const { postgres, base_url: publicUrl } = JSON.parse(readFileSync(file, 'utf8')) as {
      postgres?: { url?: unknown; owner_url?: unknown };
      base_url?: unknown;
    };
    if (typeof postgres?.url !== 'string') throw new Error('it names no database');
    const { url, owner_url: ownerUrl } = postgres;
    return {
      url,
      ...(typeof ownerUrl === 'string' && { ownerUrl }),
      ...(typeof publicUrl === 'string' && { publicUrl }),
    };
  } catch (cause) {
    throw new ConfigError(
      `DATABASE_URL is not set and no running service was found (${file}): run npm start first, or set DATABASE_URL`,
      { cause },
    );
  }
}

function readMasterKey(
  value: string | undefined,
  isProduction: boolean,
  dataDir: string,
  scope: SettingsScope | undefined,
): { key: Buffer; file: { path: string; isNew: boolean } | null } {
  if (value !== undefined) return { key: Buffer.from(value, 'base64'), file: null };
  if (isProduction) {
    // Not a usable key: sealing with it fails.
    if (scope === 'migrate') return { key: Buffer.alloc(0), file: null };
    throw new ConfigError(
      'MASTER_KEY must be set in production (32 bytes in base64): everything sealed is lost without it',
    );
  }
  const path = join(dataDir, 'master.key');
  const { isNew, text } = loadKeyFile(path, () => randomBytes(32).toString('base64'));
  const key = Buffer.from(text, 'base64');
  if (key.length !== 32) {
    throw new ConfigError(`${path} is damaged: it must hold 32 bytes in base64`);
  }
  return { key, file: { path, isNew } };
}
