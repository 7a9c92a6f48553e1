import { ValidateBy } from 'class-validator';
import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { parseAbsoluteUrl } from '#kernel/absolute-url.js';
import { GEOCODERS } from './geocoder-settings.js';
import { parseServiceAccount, type ServiceAccount } from './service-account.js';
import { parseSigner } from '#kernel/signed-note.js';

/** A network: its address and how many bits of it count. */
export type AddressRange = [ipaddr.IPv4 | ipaddr.IPv6, number];

export type MailServer = {
  host: string;
  port: number;
  /** TLS from the first byte on; else as soon as the server offers it. */
  tls: boolean;
  login: { user: string; password: string } | null;
};

const ENVIRONMENTS = ['development', 'test', 'production'] as const;
const LOG_LEVELS = ['silent', 'fatal', 'error', 'warn', 'info', 'debug'] as const;
const LOG_FORMATS = ['json', 'text'] as const;

/** Replaces a value that is not valid, with the reason. */
class Invalid {
  constructor(readonly message: string) {}
}

const parsers = new Map<string, (text: string) => unknown>();

/** The environment variables by name, parsed. */
export class Settings {
  @OneOf(ENVIRONMENTS) NODE_ENV: (typeof ENVIRONMENTS)[number] = 'development';
  @Text() HOST = '0.0.0.0';
  @WholeNumber(0, 65_535) PORT = 3000;
  @Text() MONITORING_HOST = '127.0.0.1';
  @WholeNumber(0, 65_535) HEALTH_PORT = 9466;
  @Text() DATA_DIR = '.data';
  @PublicUrl() PUBLIC_URL?: string;
  @DatabaseUrl() DATABASE_URL?: string;
  @DatabaseUrl() DATABASE_MIGRATION_URL?: string;
  @Matching(
    /^esdb(\+discover)?:\/\/[^\s\p{C}\\#]+$/u,
    'must be a connection string such as esdb://db.example:2113',
  )
  EVENT_STORE_URL?: string;
  @Matching(/^[a-z0-9_]{0,32}$/, 'must match [a-z0-9_]{0,32}') EVENT_STORE_STREAM_PREFIX = '';
  @WholeNumber(2, 200) DATABASE_POOL = 10;
  @Setting(parseMasterKey, 'must be 32 bytes in base64') MASTER_KEY?: string;
  @Setting(parseMasterKey, 'must be 32 bytes in base64') MASTER_KEY_PREVIOUS?: string;
  @Setting(parseSignerKey, 'must be what npm run -s cli -- checkpoint:create-key has written')
  CHECKPOINT_KEY?: string;
  @Text() CHECKPOINT_DIR?: string;
  @Matching(/^[^\s<>@,]+@[^\s<>@,]+$/, 'must be one address such as audit@other.example')
  CHECKPOINT_MAIL_TO?: string;
  @WholeNumber(1) RATE_LIMIT_PER_MINUTE = 300;
  @WholeNumber(1) STORE_RATE_LIMIT_PER_MINUTE = 3000;
  @WholeNumber(1) PAGE_RATE_LIMIT_PER_MINUTE = 1200;
  @WholeNumber(1, 1_000_000) SIGNUPS_PER_ADDRESS = 100;
  @WholeNumber(1, 1_000_000) SIGNUPS_PER_POSTER = 600;
  @WholeNumber(1, 100_000) MAX_REWARDS_PER_CARD = 50;
  @WholeNumber(1, 100_000) MAX_CARDS_PER_STORE = 500;
  @WholeNumber(1, 100_000) MAX_LOCATIONS_PER_STORE = 500;
  @WholeNumber(1, 100_000) MAX_POSTERS_PER_STORE = 200;
  @WholeNumber(1, 100_000) MAX_SUBSCRIPTIONS_PER_STORE = 25;
  @WholeNumber(1, 1_000_000) MAX_STRIP_PICTURES_PER_STORE = 1000;
  @WholeNumber(1, 1_000_000) MAX_SMS_PER_STORE_PER_DAY = 500;
  @WholeNumber(1, 1_000_000) SIGNUP_MAILS_PER_STORE_PER_DAY = 2000;
  @WholeNumber(1, 1_000_000) MAX_MESSAGES_PER_ADDRESS_PER_DAY = 10;
  @WholeNumber(1, 100_000) STRIP_IMAGES_KEPT_MB = 1024;
  @Text() POSTER_FONT_REGULAR?: string;
  @Text() POSTER_FONT_BOLD?: string;
  @WholeNumber(1, 1_000_000) MAX_OPEN_CARDS = 5_000;
  @WholeNumber(1, 1_000_000) MAX_OPEN_CARDS_PER_ADDRESS = 100;
  @WholeNumber(0, 10) TRUST_PROXY_HOPS = 0;
  @Setting(parseRanges, 'must be ranges such as 10.1.0.0/16, separated by commas')
  WEBHOOK_ALLOWED_CIDRS: AddressRange[] = [];
  @Url('redis:', 'rediss:') REDIS_URL?: string;
  @Setting(parseOrigins, 'must be * or origins such as https://shop.example, separated by commas')
  CORS_ORIGINS: string[] = [];
  @Moment() API_V1_DEPRECATION_DATE?: Date;
  @Moment() API_V1_SUNSET_DATE?: Date;
  @Setting(parseFlag, 'must be true or false') WEBHOOK_ALLOW_INSECURE_TARGETS = false;
  @Setting(parseFlag, 'must be true or false') WEB_PUSH_ALLOW_INSECURE_ENDPOINTS = false;
  @WholeNumber(1, 3650) WEBHOOK_RETENTION_DAYS = 30;
  @WholeNumber(1, 3650) ADDRESS_RETENTION_DAYS = 30;
  @MailUrl('smtp:', 'smtps:') SMTP_URL?: MailServer;
  @Matching(
    /^([^<>@\r\n]+ <[^\s<>@]+@[^\s<>@]+>|[^\s<>@]+@[^\s<>@]+)$/,
    'must be like inkpad@shop.example or Inkpad <inkpad@shop.example>',
  )
  MAIL_FROM?: string;
  @Matching(
    /^(https:\/\/[^\s\p{C}\\]+|[^\s<>@,:]+@[^\s<>@,]+)$/u,
    'must be an e-mail address or a URL that begins with https://',
  )
  SECURITY_CONTACT?: string;
  @Url('http:', 'https:') SMS_URL?: string;
  @Matching(/^[A-Za-z0-9_-]{1,64}$/, 'must be the SID of the account') SMS_ACCOUNT?: string;
  @Text() SMS_TOKEN?: string;
  @Matching(
    /^(\+[1-9]\d{4,14}|\d{3,8}|MG[0-9a-f]{32}|(?=.*[A-Za-z])[A-Za-z0-9 ]{1,11})$/,
    'must be a number such as +4915112345678, a name of at most 11 letters and digits, or the SID of a messaging service',
  )
  SMS_FROM?: string;
  @Certificate() APPLE_PASS_CERT?: string;
  @Setting(parsePem, 'must be a private key in PEM') APPLE_PASS_KEY?: string;
  @Text() APPLE_PASS_KEY_PASSPHRASE?: string;
  @Certificate() APPLE_WWDR_CERT?: string;
  @Text() APPLE_PASS_TYPE_ID?: string;
  @Text() APPLE_TEAM_ID?: string;
  @Url('https:') APNS_URL = 'https://api.push.apple.com';
  @Certificate() APNS_CA_CERT?: string;
  @Setting(parsePem, 'must be a private key in PEM (.p8)') APNS_KEY?: string;
  @Text() APNS_KEY_ID?: string;
  @Setting(parseFactor, 'must be a number of at least 1') WEBHOOK_TIME_SCALE = 1;
  @Matching(/^\d{4,25}$/, 'must be the number that the Google Pay & Wallet console shows')
  GOOGLE_WALLET_ISSUER_ID?: string;
  @Setting(parseGoogleKey, 'must be the JSON of a service account key')
  GOOGLE_WALLET_KEY?: ServiceAccount;
  @Matching(/^[A-Za-z0-9.-]{1,32}$/, 'must match [A-Za-z0-9.-]{1,32}') GOOGLE_WALLET_ID_SUFFIX =
    'inkpad';
  @Url('http:', 'https:') GOOGLE_WALLET_URL =
    'https://walletobjects.googleapis.com/walletobjects/v1';
  @Url('http:', 'https:') GOOGLE_WALLET_SAVE_URL = 'https://pay.google.com/gp/v/save';
  @Url('http:', 'https:') GOOGLE_WALLET_CALLBACK_KEYS_URL =
    'https://pay.google.com/gp/m/issuer/keys';
  @WholeNumber(1, 1_000) GOOGLE_WALLET_REQUESTS_PER_SECOND = 15;
  @Url('https:', 'http:') OIDC_ISSUER?: string;
  @Text() OIDC_CLIENT_ID?: string;
  @Text() OIDC_CLIENT_SECRET?: string;
  @OneOf(GEOCODERS) GEOCODER: (typeof GEOCODERS)[number] = 'offline';
  @Url('http:', 'https:') GEOCODER_URL?: string;
  @Text() GEOCODER_KEY?: string;
  @Matching(/^[\x20-\x27\x2a-\x7e]{1,200}$/, 'must be an e-mail address or a web page')
  GEOCODER_CONTACT?: string;
  @WholeNumber(1, 1_000) GEOCODER_REQUESTS_PER_SECOND = 1;
  @WholeNumber(0, 65_535) METRICS_PORT?: number;
  @Url('http:', 'https:') OTEL_EXPORTER_OTLP_ENDPOINT?: string;
  @OneOf(LOG_LEVELS) LOG_LEVEL: (typeof LOG_LEVELS)[number] = 'info';
  @OneOf(LOG_FORMATS) LOG_FORMAT?: (typeof LOG_FORMATS)[number];

  /** Parses the settings. class-validator reports later what could not be parsed. */
  static read(environment: Record<string, string | undefined>): Settings {
    const settings = new Settings();
    for (const [name, parse] of parsers) {
      const text = environment[name];
      if (text !== undefined) Object.assign(settings, { [name]: parse(text) });
    }
    return settings;
  }
}

/** Names of all settings, for the test that compares docker-compose.yml with them. */
export const SETTINGS: readonly string[] = [...parsers.keys()];

/**
 * @param parse returns undefined for a text that cannot be used
 * @param message for such a text
 */
function Setting(parse: (text: string) => unknown, message: string): PropertyDecorator {
  const check = ValidateBy({
    name: 'setting',
    validator: {
      validate: (value) => !(value instanceof Invalid),
      defaultMessage: (about) => (about?.value instanceof Invalid ? about.value.message : message),
    },
  });
  return (target, name) => {
    parsers.set(String(name), (text) => parse(text) ?? new Invalid(message));
    check(target, name);
  };
}

function Text(): PropertyDecorator {
  return Setting((text) => text, 'must be a text');
}

function WholeNumber(min: number, max = Number.MAX_SAFE_INTEGER): PropertyDecorator {
  const range = max === Number.MAX_SAFE_INTEGER ? `from ${min} on` : `from ${min} to ${max}`;
  return Setting((text) => {
    const number = Number(text);
    return Number.isSafeInteger(number) && number >= min && number <= max ? number : undefined;
  }, `must be a whole number ${range}`);
}

function Matching(pattern: RegExp, message: string): PropertyDecorator {
  return Setting((text) => (pattern.test(text) ? text : undefined), message);
}

function OneOf(values: readonly string[]): PropertyDecorator {
  return Setting((text) => values.find((value) => value === text), `must be ${values.join(', ')}`);
}

function Certificate(): PropertyDecorator {
  return Setting(parseCertificate, 'must be a certificate in PEM (-----BEGIN CERTIFICATE-----)');
}

function Moment(): PropertyDecorator {
  return Setting(parseMoment, 'must be an ISO date such as 2027-01-31, or a time with its offset');
}

function Url(...protocols: string[]): PropertyDecorator {
  return UrlSetting(protocols, normalizeUrl, renderUrlMessage(protocols));
}

/** @param parse returns undefined for a URL that cannot be used, as the message says */
function UrlSetting(
  protocols: string[],
  parse: (url: URL, text: string) => unknown,
  message: string,
): PropertyDecorator {
  return Setting((text) => {
    const url = parseAbsoluteUrl(text);
    if (!url || !protocols.includes(url.protocol)) return new Invalid(renderUrlMessage(protocols));
    // TLS has no name that ends so (RFC 6066, section 3), and nor have certificates.
    if (/(\.|%2e)$/i.test(url.hostname))
      return new Invalid('must name a host that does not end with a dot');
    return parse(url, text);
  }, message);
}

/** Renders the URL as the parser does, without a path that was not there: paths are appended to many. */
function normalizeUrl({ href }: URL, text: string): string {
  return text.endsWith('/') ? href : href.replace(/\/$/, '');
}

/** Accepts a URL that paths can be appended to. */
function PublicUrl(): PropertyDecorator {
  return UrlSetting(['http:', 'https:'], parsePublicUrl, 'must have no user or query');
}

function DatabaseUrl(): PropertyDecorator {
  return UrlSetting(
    ['postgres:', 'postgresql:'],
    (_, text) => parseDatabaseUrl(text),
    'must have %25, %40 and the like for special characters of name and password',
  );
}

function MailUrl(...protocols: string[]): PropertyDecorator {
  return UrlSetting(
    protocols,
    parseMailServer,
    'must name a host, and have %40 and the like for special characters of name and password',
  );
}

function parsePublicUrl(url: URL, text: string): string | undefined {
  return url.username || url.password || text.includes('?') ? undefined : normalizeUrl(url, text);
}

/** @returns undefined for what is percent-encoded wrongly */
function parseDatabaseUrl(text: string): string | undefined {
  try {
    decodeURIComponent(text);
    return text;
  } catch {
    return undefined;
  }
}

function renderUrlMessage(protocols: string[]): string {
  const starts = protocols.map((p) => `${p}//`).join(' or ');
  return `must be a URL that starts with ${starts}, without spaces, backslashes and "#"`;
}

function parseMasterKey(text: string): string | undefined {
  return Buffer.from(text, 'base64').length === 32 ? text : undefined;
}

function parseSignerKey(text: string): string | undefined {
  return parseSigner(text) && text;
}

function parseGoogleKey(text: string): ServiceAccount | Invalid {
  const account = parseServiceAccount(text);
  return typeof account === 'string' ? new Invalid(account) : account;
}

/** Parses PEM; in a text of one line, `\\n` stands for the end of a line. */
function parsePem(text: string): string | undefined {
  const pem = text.replaceAll('\\n', '\n').trim();
  return /-----BEGIN [A-Z0-9 ]+-----/.test(pem) ? `${pem}\n` : undefined;
}

function parseCertificate(text: string): string | undefined {
  const pem = parsePem(text);
  try {
    return pem && new X509Certificate(pem) && pem;
  } catch {
    // OpenSSL's words say nothing that a person could act on.
    return undefined;
  }
}

function parseFlag(text: string): boolean | undefined {
  if (['true', '1'].includes(text)) return true;
  return ['false', '0'].includes(text) ? false : undefined;
}

function parseFactor(text: string): number | undefined {
  const factor = Number(text);
  return Number.isFinite(factor) && factor >= 1 ? factor : undefined;
}

function parseRanges(text: string): AddressRange[] | Invalid | undefined {
  const texts = text.split(',').map((range) => range.trim());
  const isValid = texts.every(
    (range) => isIP(range.split('/')[0] ?? '') && ipaddr.isValidCIDR(range),
  );
  if (!isValid) return undefined;
  const ranges = texts.map((range) => ipaddr.parseCIDR(range));
  return ranges.some(isMapped)
    ? new Invalid('must have IPv4 ranges as such: 10.0.0.0/8, not ::ffff:10.0.0.0/104')
    : ranges;
}

/**
 * Tells whether every address of the range is an IPv4 address in IPv6 notation. Such addresses are converted to IPv4
 * first.
 */
function isMapped([address, bits]: AddressRange): boolean {
  return address instanceof ipaddr.IPv6 && bits >= 96 && address.isIPv4MappedAddress();
}

function parseOrigins(text: string): string[] | undefined {
  const origins = text.split(',').map((origin) => origin.trim());
  const isValid = origins.every((one) => one === '*' || isOrigin(one));
  return isValid ? origins : undefined;
}

/**
 * Tells whether the text is an origin as browsers send it. It is compared as it is, so a pattern would match nothing.
 */
function isOrigin(text: string): boolean {
  const url = parseAbsoluteUrl(text);
  return url?.origin === text && /^https?:\/\/(\[[\da-f:.]+\]|[\w.-]+)(:\d+)?$/.test(text);
}

const DAY = /^\d{4}-\d\d-\d\d/;
const TIME = /^(T([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d+)?)?(Z|[+-]([01]\d|2[0-3]):?[0-5]\d))?$/;

/** @returns undefined for what is neither a date nor a time with its offset, 30 February included */
export function parseMoment(text: string): Date | undefined {
  const [day] = DAY.exec(text) ?? [];
  if (day === undefined || !TIME.test(text.slice(day.length))) return undefined;
  const midnight = new Date(day);
  if (Number.isNaN(midnight.getTime()) || !midnight.toISOString().startsWith(day)) return undefined;
  return new Date(text);
}

function parseMailServer(url: URL): MailServer | undefined {
  const { protocol, hostname, port, username, password } = url;
  const tls = protocol === 'smtps:';
  if (hostname === '') return undefined;
  try {
    return {
      host: decodeURIComponent(hostname).replace(/^\[(.*)\]$/, '$1'),
      port: port === '' ? (tls ? 465 : 587) : Number(port),
      tls,
      login:
        username === ''
          ? null
          : { user: decodeURIComponent(username), password: decodeURIComponent(password) },
    };
  } catch (error) {
    // What is percent-encoded wrongly; the text itself may be a password.
    if (error instanceof URIError) return undefined;
    throw error;
  }
}
