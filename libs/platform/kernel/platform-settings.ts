import {
  DatabaseUrl,
  Describe,
  Flag,
  Matching,
  Moment,
  OneOf,
  parseMasterKey,
  parseOrigins,
  parseSignerKey,
  PublicUrl,
  Secret,
  Setting,
  Text,
  Url,
  WholeNumber,
} from './setting-decorators.js';

const ENVIRONMENTS = ['development', 'test', 'production'] as const;
const LOG_LEVELS = ['silent', 'fatal', 'error', 'warn', 'info', 'debug'] as const;
const LOG_FORMATS = ['json', 'text'] as const;

/** The environment variables of the platform by name, parsed. Each is declared here only: name, type, default and text. */
export class PlatformSettings {
  @OneOf(ENVIRONMENTS) NODE_ENV: (typeof ENVIRONMENTS)[number] = 'development';
  @Describe(`
    Where the api listens, and its public URL (default http://localhost:$PORT). \`npm start\`
    listens on 127.0.0.1 while it allows insecure targets.
  `)
  @Text()
  HOST = '0.0.0.0';
  @WholeNumber(0, 65_535) PORT = 3000;
  @PublicUrl() PUBLIC_URL?: string;
  @Describe(`
    Where both processes listen for metrics, and the dispatcher for health checks. The container
    image sets 0.0.0.0.
  `)
  @Text()
  MONITORING_HOST = '127.0.0.1';
  @Describe(`
    Port of the dispatcher's health checks; 0 picks any free port, which is what \`npm start\`
    uses.
  `)
  @WholeNumber(0, 65_535)
  HEALTH_PORT = 9466;
  @Describe(`
    Port of a process's metrics: 9464 for the api and 9465 for the dispatcher; 0 picks any free
    port. With \`npm start\` this is the api's port, and the dispatcher uses the next one that
    neither PORT nor HEALTH_PORT is.
  `)
  @WholeNumber(0, 65_535)
  METRICS_PORT?: number;
  @Describe(`Where keys, local.json and, without DATABASE_URL, the database itself are stored.`)
  @Text()
  DATA_DIR = '.data';
  @Describe(`
    PostgreSQL 15 or newer. Unset: \`npm start\` runs its own. The second URL is for migrations,
    as the owner of the tables; they create the role of the first URL, which can add to the
    history but not change it. Unset: one role.
  `)
  @Secret()
  @DatabaseUrl()
  DATABASE_URL?: string;
  @Secret()
  @DatabaseUrl()
  DATABASE_MIGRATION_URL?: string;
  @WholeNumber(2, 200) DATABASE_POOL = 10;
  @Describe(`
    A streaming standby of PostgreSQL, from which the api reads statistics and exports. A report
    waits up to two seconds until the standby has what was committed before it; after that, and
    while it cannot be reached, the primary is read. Unset: always the primary.
  `)
  @Secret()
  @DatabaseUrl()
  DATABASE_READ_URL?: string;
  @Describe(`
    How long api and dispatcher wait at their start for a database that cannot be reached, before
    they exit with 1. 0: they exit at once.
  `)
  @WholeNumber(0, 86_400)
  START_WAIT_SECONDS = 3600;
  @Describe(`
    How long the api goes on serving after SIGTERM. /health/ready says at once that it is not
    ready, and a load balancer needs some time to notice: set 5 behind one, as docker compose and
    Kubernetes have it.
  `)
  @WholeNumber(0, 10)
  SHUTDOWN_DELAY_SECONDS = 0;
  @Describe(`
    Keeps events in KurrentDB or EventStoreDB, e.g. kurrentdb://inkpad:secret@localhost:2113?tls=true
    (or kdb:// or esdb://, each also with +discover). Unset: PostgreSQL. The prefix of its streams
    keeps a service apart from other applications and services in one event store. Percent-encode
    special characters of passwords, here and in every other URL.
  `)
  @Secret()
  @Text()
  EVENT_STORE_URL?: string;
  @Matching(/^[a-z0-9_]{1,32}$/, 'must match [a-z0-9_]{1,32}') EVENT_STORE_STREAM_PREFIX =
    'inkpad_';
  @Describe(`
    32 bytes in base64 (openssl rand -base64 32) that encrypt personal fields and secrets.
    Unset: generated once in DATA_DIR. Required in production (NODE_ENV=production). Without it,
    encrypted data is lost.
  `)
  @Secret()
  @Setting(parseMasterKey, 'must be 32 bytes in base64')
  MASTER_KEY?: string;
  @Describe(`The former key, only while the key is being changed (docs/operating/protect.md).`)
  @Secret()
  @Setting(parseMasterKey, 'must be 32 bytes in base64')
  MASTER_KEY_PREVIOUS?: string;
  @Describe(`
    The key that signs the checkpoints of the history (docs/history.md), created with inkpad checkpoint:create-key. Unset: generated once in DATA_DIR; in production no
    checkpoints are signed.
  `)
  @Secret()
  @Setting(parseSignerKey, 'must be what inkpad checkpoint:create-key has written')
  CHECKPOINT_KEY?: string;
  @Describe(`
    A folder for the checkpoints, best on another machine. Unset: checkpoints in DATA_DIR; in
    production none. With docker compose a folder or volume that uid 1000 can write to, by
    default the volume checkpoints.
  `)
  @Text()
  CHECKPOINT_DIR?: string;
  @Describe(`
    Receives a checkpoint by e-mail each day: somebody who does not operate the database. Needs
    SMTP_URL.
  `)
  @Matching(/^[^\s<>@,]+@[^\s<>@,]+$/, 'must be one address such as audit@other.example')
  CHECKPOINT_MAIL_TO?: string;
  @Describe(`
    Requests per minute per token, or per IP address for callers without one; likewise for the
    admin API, whose tokens count apart.
  `)
  @WholeNumber(1)
  RATE_LIMIT_PER_MINUTE = 300;
  @Describe(`
    Requests per minute per IP address outside the API, without health checks.
  `)
  @WholeNumber(1)
  PAGE_RATE_LIMIT_PER_MINUTE = 1200;
  @Describe(`
    Redis for shared rate limits, e.g. redis://:secret@localhost:6379/0, or rediss: with TLS.
    Unset: each api counts separately. Installations that share a Redis each need their own
    database number at the end.
  `)
  @Secret()
  @Url('redis:', 'rediss:')
  REDIS_URL?: string;
  @Describe(`
    The number of your proxies in front; X-Forwarded-For is trusted for that many hops, with or
    without ports.
  `)
  @WholeNumber(0, 10)
  TRUST_PROXY_HOPS = 0;
  @Describe(`
    Whole origins whose browser scripts may call the API, separated by commas, or * for any; no
    patterns. Those of apps have a scheme of their own, such as capacitor://localhost.
  `)
  @Setting(
    parseOrigins,
    'must be * or origins such as https://app.example or capacitor://localhost, without a path, separated by commas',
  )
  CORS_ORIGINS: string[] = [];
  @Describe(`
    Whether browsers use https for all subdomains of PUBLIC_URL's host too, for a year
    (Strict-Transport-Security): true if each of them has a certificate.
  `)
  @Flag()
  HSTS_INCLUDE_SUBDOMAINS = false;
  @Describe(`
    ISO dates (or times with an offset) from which v1 is deprecated and retired. The first may
    be in the future and is announced on every response right away; the second must be at least
    twelve months later, and twelve months after the first start with these dates
    (docs/operating/upgrade.md). From then on v1 returns 410.
  `)
  @Moment()
  API_V1_DEPRECATION_DATE?: Date;
  @Moment() API_V1_SUNSET_DATE?: Date;
  @Describe(`silent, fatal, error, warn, info or debug`)
  @OneOf(LOG_LEVELS)
  LOG_LEVEL: (typeof LOG_LEVELS)[number] = 'info';
  @Describe(`json (one object per line; the default in production) or text`)
  @OneOf(LOG_FORMATS)
  LOG_FORMAT?: (typeof LOG_FORMATS)[number];
  @Describe(`Where to send traces (OTLP over HTTP): http://localhost:4318. Unset: tracing is off.`)
  @Url('http:', 'https:')
  OTEL_EXPORTER_OTLP_ENDPOINT?: string;
}
