import { validateSync } from 'class-validator';
import { existsSync, readFileSync } from 'node:fs';
import { randomBytes } from 'node:crypto';
import { join, resolve } from 'node:path';
import {
  readAppleCredentials,
  type AppleCredentials,
  type AppleSettings,
} from './apple-credentials.js';
import { describeFileError } from '#kernel/file-errors.js';
import { findGeocoderErrors, readGeocoder, type GeocoderChoice } from './geocoder-settings.js';
import { createKeyFile } from '#kernel/key-file.js';
import { readSecretFiles } from './secret-files.js';
import type { ServiceAccount } from './service-account.js';
import { findCrossFieldErrors, type Reader } from './setting-errors.js';
import { Settings, type AddressRange, type MailServer } from './settings.js';
import { ConfigError } from '#kernel/config-error.js';
import { PlatformConfig } from '#kernel/platform-config.js';
import { isBlankText, trimText } from '#kernel/text.js';

/** The settings as the code uses them, made once at the start. */
export class Config extends PlatformConfig {
  override readonly isProduction: PlatformConfig['isProduction'];
  override readonly host: PlatformConfig['host'];
  override readonly port: PlatformConfig['port'];
  override readonly monitoringHost: PlatformConfig['monitoringHost'];
  override readonly healthPort: PlatformConfig['healthPort'];
  override readonly dataDir: PlatformConfig['dataDir'];
  override readonly publicUrl: PlatformConfig['publicUrl'];
  override readonly databaseUrl: PlatformConfig['databaseUrl'];
  override readonly databaseMigrationUrl: PlatformConfig['databaseMigrationUrl'];
  override readonly databasePool: PlatformConfig['databasePool'];
  override readonly eventStoreUrl: PlatformConfig['eventStoreUrl'];
  override readonly eventStoreStreamPrefix: PlatformConfig['eventStoreStreamPrefix'];
  override readonly masterKey: PlatformConfig['masterKey'];
  override readonly masterKeyPrevious: PlatformConfig['masterKeyPrevious'];
  override readonly masterKeyFile: PlatformConfig['masterKeyFile'];
  override readonly rateLimitPerMinute: PlatformConfig['rateLimitPerMinute'];
  override readonly accountRateLimitPerMinute: PlatformConfig['accountRateLimitPerMinute'];
  override readonly pageRateLimitPerMinute: PlatformConfig['pageRateLimitPerMinute'];
  /** Signup forms in ten minutes: of any kind from one IP address, and complete ones for one poster. */
  readonly signups: { perAddress: number; perPoster: number };
  /** The maximum number of records: rewards per card, everything else per store. */
  readonly limits: {
    rewards: number;
    cards: number;
    locations: number;
    posters: number;
    webhookSubscriptions: number;
    stripPictures: number;
    smsPerDay: number;
    /** E-mails that signup pages ask for. */
    signupMailsPerDay: number;
  };
  /** Card links to one address or number in 24 hours, from all stores together; likewise invitations. */
  readonly messagesPerAddressPerDay: number;
  /** Size of the image cache in the database; evicted images are rendered again on demand. */
  readonly stripImageCacheMb: number;
  /** Files of fonts for what the posters' own font has no letters for. */
  readonly readPosterFonts: { regular: string | null; bold: string | null };
  /** Maximum number of web cards that one process keeps up to date, in total and per address. */
  readonly openCards: { max: number; perAddress: number };
  override readonly trustProxyHops: PlatformConfig['trustProxyHops'];
  /** Networks that webhooks may reach besides the public internet. */
  readonly webhookAllowedCidrs: AddressRange[];
  override readonly redisUrl: PlatformConfig['redisUrl'];
  override readonly corsOrigins: PlatformConfig['corsOrigins'];
  override readonly v1: PlatformConfig['v1'];
  readonly webhookAllowInsecureTargets: boolean;
  /** Networks that web push may reach: the public internet only, never those allowed for webhooks. */
  readonly webPushRules: {
    webhookAllowInsecureTargets: boolean;
    webhookAllowedCidrs: AddressRange[];
  };
  /** Whole days, for delivered and failed deliveries and for rendered events. */
  readonly webhookRetentionDays: number;
  /** Days until users without a store and ended invitations are deleted. */
  readonly addressRetentionDays: number;
  readonly webhookTimeScale: number;
  /** Null: no e-mails are sent. Only the dispatcher needs the server. */
  readonly mail: { from: string; server: MailServer | null } | null;
  /** Contact of security researchers as a URL; null if there is none. */
  readonly securityContact: string | null;
  /** Null: no SMS are sent. The URL has no trailing slash. */
  readonly sms: { url: string; account: string; token: string; from: string } | null;
  /** Null: Google Wallet is not configured. */
  readonly google: GoogleWallet | null;
  /** Null: Apple Wallet is not configured. */
  readonly apple: AppleCredentials | null;
  /** OpenID provider for signing in; null: passwords only. */
  readonly oidc: { issuer: string; clientId: string; clientSecret: string | null } | null;
  readonly geocoder: GeocoderChoice;
  override readonly metricsPort: PlatformConfig['metricsPort'];
  override readonly checkpoints: PlatformConfig['checkpoints'];
  override readonly otlpEndpoint: PlatformConfig['otlpEndpoint'];
  override readonly logLevel: PlatformConfig['logLevel'];
  override readonly logFormat: PlatformConfig['logFormat'];

  /** @param env validated by `readConfig` */
  constructor(env: Settings, reader?: Reader) {
    super();
    const dataDir = resolve(env.DATA_DIR);
    const isProduction = env.NODE_ENV === 'production';
    const database = readDatabaseUrls(env, dataDir);
    this.isProduction = isProduction;
    this.host = env.HOST;
    this.port = env.PORT;
    this.monitoringHost = env.MONITORING_HOST;
    this.healthPort = env.HEALTH_PORT;
    this.dataDir = dataDir;
    const publicUrl = env.PUBLIC_URL ?? database.publicUrl ?? `http://localhost:${env.PORT}`;
    this.publicUrl = publicUrl.replace(/\/+$/, '');
    this.databaseUrl = database.url;
    this.databaseMigrationUrl = env.DATABASE_MIGRATION_URL ?? database.ownerUrl ?? database.url;
    this.databasePool = env.DATABASE_POOL;
    this.eventStoreUrl = env.EVENT_STORE_URL ?? null;
    this.eventStoreStreamPrefix = env.EVENT_STORE_STREAM_PREFIX;
    const { key, file } = readMasterKey(env.MASTER_KEY, isProduction, dataDir, reader);
    this.masterKey = key;
    this.masterKeyFile = file;
    this.masterKeyPrevious =
      env.MASTER_KEY_PREVIOUS === undefined ? null : Buffer.from(env.MASTER_KEY_PREVIOUS, 'base64');
    this.rateLimitPerMinute = env.RATE_LIMIT_PER_MINUTE;
    this.accountRateLimitPerMinute = env.STORE_RATE_LIMIT_PER_MINUTE;
    this.pageRateLimitPerMinute = env.PAGE_RATE_LIMIT_PER_MINUTE;
    this.signups = { perAddress: env.SIGNUPS_PER_ADDRESS, perPoster: env.SIGNUPS_PER_POSTER };
    this.limits = readLimits(env);
    this.messagesPerAddressPerDay = env.MAX_MESSAGES_PER_ADDRESS_PER_DAY;
    this.stripImageCacheMb = env.STRIP_IMAGES_KEPT_MB;
    this.readPosterFonts = readPosterFonts(env);
    this.openCards = { max: env.MAX_OPEN_CARDS, perAddress: env.MAX_OPEN_CARDS_PER_ADDRESS };
    this.trustProxyHops = env.TRUST_PROXY_HOPS;
    this.webhookAllowedCidrs = env.WEBHOOK_ALLOWED_CIDRS;
    this.redisUrl = env.REDIS_URL ?? null;
    this.corsOrigins = env.CORS_ORIGINS;
    this.v1 = readV1Dates(env);
    this.webhookAllowInsecureTargets = env.WEBHOOK_ALLOW_INSECURE_TARGETS;
    this.webPushRules = {
      webhookAllowInsecureTargets: env.WEB_PUSH_ALLOW_INSECURE_ENDPOINTS,
      webhookAllowedCidrs: [],
    };
    this.webhookRetentionDays = env.WEBHOOK_RETENTION_DAYS;
    this.addressRetentionDays = env.ADDRESS_RETENTION_DAYS;
    this.webhookTimeScale = env.WEBHOOK_TIME_SCALE;
    this.mail = readMail(env);
    this.securityContact = toContactUrl(env.SECURITY_CONTACT);
    this.sms = readSms(env);
    this.google = readGoogleWallet(env);
    this.apple = readAppleCredentials(env as AppleSettings, new Date()).credentials;
    this.oidc = readOidc(env);
    this.geocoder = readGeocoder(env);
    this.metricsPort = env.METRICS_PORT ?? null;
    this.checkpoints = readCheckpoints(env, isProduction ? null : join(dataDir, 'checkpoints'));
    this.otlpEndpoint = env.OTEL_EXPORTER_OTLP_ENDPOINT?.replace(/\/+$/, '') ?? null;
    this.logLevel = env.LOG_LEVEL;
    this.logFormat = env.LOG_FORMAT ?? (isProduction ? 'json' : 'text');
  }
}

/** Settings of Google Wallet. URLs have no trailing slash. */
export type GoogleWallet = {
  issuerId: string;
  account: ServiceAccount;
  /** Suffix of every id, so that several installations can share an issuer. */
  idSuffix: string;
  url: string;
  saveUrl: string;
  callbackKeysUrl: string;
  requestsPerSecond: number;
};

/** Refused, not repaired: what is at the end of an address is part of it. */
const ADDRESS_SETTING = /_(?:URL|ISSUER|ENDPOINT)$/;

/**
 * Reads and validates the environment; nothing else reads it. Blank values count as unset.
 * @param reader api: may lack what only the dispatcher needs; migrate: may lack the master key
 * @throws ConfigError that names every invalid value at once
 */
export function readConfig(environment: NodeJS.ProcessEnv, reader?: Reader): Config {
  const { settings: texts, errors: fileErrors } = readSecretFiles(
    Object.fromEntries(
      Object.entries(environment)
        .map(
          ([name, text = '']) =>
            [name, ADDRESS_SETTING.test(name) ? text : trimText(text)] as const,
        )
        .filter(([, text]) => !isBlankText(text)),
    ),
  );
  const settings = Settings.read(texts);
  const invalid = validateSync(settings).flatMap(({ property, constraints = {} }) =>
    Object.values(constraints).map((message) => `${property}: ${message}`),
  );
  const errors = [
    ...fileErrors,
    ...invalid,
    ...findCrossFieldErrors(texts, reader),
    ...findGeocoderErrors(texts),
    // How they fit together can be said only once each can be read.
    ...(invalid.length > 0
      ? []
      : readAppleCredentials(settings as AppleSettings, new Date()).errors),
  ];
  if (errors.length > 0) {
    throw new ConfigError(`Settings that cannot be used:\n  ${errors.join('\n  ')}`);
  }
  return new Config(settings, reader);
}

function readPosterFonts({
  POSTER_FONT_REGULAR: regular,
  POSTER_FONT_BOLD: bold,
}: Settings): Config['readPosterFonts'] {
  return { regular: regular ?? null, bold: bold ?? null };
}

function readLimits(env: Settings): Config['limits'] {
  return {
    rewards: env.MAX_REWARDS_PER_CARD,
    cards: env.MAX_CARDS_PER_STORE,
    locations: env.MAX_LOCATIONS_PER_STORE,
    posters: env.MAX_POSTERS_PER_STORE,
    webhookSubscriptions: env.MAX_SUBSCRIPTIONS_PER_STORE,
    stripPictures: env.MAX_STRIP_PICTURES_PER_STORE,
    smsPerDay: env.MAX_SMS_PER_STORE_PER_DAY,
    signupMailsPerDay: env.SIGNUP_MAILS_PER_STORE_PER_DAY,
  };
}

function readMail({ SMTP_URL: server, MAIL_FROM: from }: Settings): Config['mail'] {
  return from === undefined ? null : { from, server: server ?? null };
}

function toContactUrl(contact: string | undefined): string | null {
  if (contact === undefined) return null;
  return contact.startsWith('https://') ? contact : `mailto:${contact}`;
}

/** @param defaultDir the folder if none is set */
function readCheckpoints(env: Settings, defaultDir: string | null): Config['checkpoints'] {
  return {
    key: env.CHECKPOINT_KEY ?? null,
    dir: env.CHECKPOINT_DIR === undefined ? defaultDir : resolve(env.CHECKPOINT_DIR),
    mailTo: env.CHECKPOINT_MAIL_TO ?? null,
  };
}

function readV1Dates(env: Settings): Config['v1'] {
  return {
    deprecatedAt: env.API_V1_DEPRECATION_DATE ?? null,
    sunsetAt: env.API_V1_SUNSET_DATE ?? null,
  };
}

function readOidc(env: Settings): Config['oidc'] {
  const { OIDC_ISSUER: issuer, OIDC_CLIENT_ID: clientId, OIDC_CLIENT_SECRET: secret } = env;
  if (issuer === undefined || clientId === undefined) return null;
  return { issuer, clientId, clientSecret: secret ?? null };
}

function readSms(env: Settings): Config['sms'] {
  const { SMS_URL: url, SMS_ACCOUNT: account, SMS_TOKEN: token, SMS_FROM: from } = env;
  if (!url || !account || !token || !from) return null;
  return { url: url.replace(/\/+$/, ''), account, token, from };
}

function readDatabaseUrls(env: Settings, dataDir: string): DatabaseUrls {
  return env.DATABASE_URL ? { url: env.DATABASE_URL } : readRunFile(dataDir);
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

function readGoogleWallet(env: Settings): GoogleWallet | null {
  const { GOOGLE_WALLET_ISSUER_ID: issuerId, GOOGLE_WALLET_KEY: account } = env;
  if (issuerId === undefined || account === undefined) return null;
  const trimSlash = (url: string) => url.replace(/\/+$/, '');
  return {
    issuerId,
    account,
    idSuffix: env.GOOGLE_WALLET_ID_SUFFIX,
    url: trimSlash(env.GOOGLE_WALLET_URL),
    saveUrl: trimSlash(env.GOOGLE_WALLET_SAVE_URL),
    callbackKeysUrl: env.GOOGLE_WALLET_CALLBACK_KEYS_URL,
    requestsPerSecond: env.GOOGLE_WALLET_REQUESTS_PER_SECOND,
  };
}

function readMasterKey(
  value: string | undefined,
  isProduction: boolean,
  dataDir: string,
  reader: Reader | undefined,
): { key: Buffer; file: Config['masterKeyFile'] } {
  if (value !== undefined) return { key: Buffer.from(value, 'base64'), file: null };
  if (isProduction) {
    // Not a usable key: sealing with it fails.
    if (reader === 'migrate') return { key: Buffer.alloc(0), file: null };
    throw new ConfigError(
      'MASTER_KEY must be set in production (32 bytes in base64): everything sealed is lost without it',
    );
  }
  const path = join(dataDir, 'master.key');
  const { isNew, text } = loadKeyFile(path);
  const key = Buffer.from(text, 'base64');
  if (key.length !== 32) {
    throw new ConfigError(`${path} is damaged: it must hold 32 bytes in base64`);
  }
  return { key, file: { path, isNew } };
}

/** @throws ConfigError */
function loadKeyFile(path: string): { isNew: boolean; text: string } {
  try {
    const isNew = !existsSync(path) && createKeyFile(path, randomBytes(32).toString('base64'));
    return { isNew, text: readFileSync(path, 'utf8') };
  } catch (cause) {
    const description = describeFileError(cause);
    if (description === undefined) throw cause;
    throw new ConfigError(`DATA_DIR: ${path} cannot be used: ${description}.`, { cause });
  }
}
