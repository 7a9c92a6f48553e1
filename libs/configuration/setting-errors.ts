import { isLoopbackHost, parseAbsoluteUrl } from '#platform/kernel/absolute-url.js';
import { getEarliestSunset } from '#platform/kernel/retirement.js';
import {
  findConnectionStringError,
  parseConnectionString,
} from '#platform/event-store/eventstoredb/connection-string.js';
import type { SettingsScope } from '#platform/kernel/platform-config.js';
import { findFileError, parseMoment } from '#platform/kernel/setting-decorators.js';
import { Settings } from './settings.js';

type Environment = Readonly<Record<string, string | undefined>>;

/** Settings that mean nothing without another setting, and what a message says of the other. */
const NEEDS: Readonly<Record<string, { needed: string; hint?: string }>> = {
  API_V1_SUNSET_DATE: {
    needed: 'API_V1_DEPRECATION_DATE',
    hint: ', at least twelve months before it',
  },
  BOUNCE_ADDRESS: { needed: 'MAIL_FROM' },
  BOUNCE_MAILBOX_URL: { needed: 'MAIL_FROM' },
  CHECKPOINT_MAIL_TO: { needed: 'SMTP_URL' },
  GOOGLE_WALLET_ISSUER_ID: { needed: 'GOOGLE_WALLET_KEY', hint: ' or GOOGLE_WALLET_KEY_FILE' },
  GOOGLE_WALLET_KEY: { needed: 'GOOGLE_WALLET_ISSUER_ID' },
  MAIL_FROM: { needed: 'SMTP_URL' },
  MASTER_KEY_PREVIOUS: { needed: 'MASTER_KEY', hint: ', the new key' },
  OIDC_CLIENT_ID: { needed: 'OIDC_ISSUER' },
  OIDC_CLIENT_SECRET: { needed: 'OIDC_ISSUER' },
  OIDC_ISSUER: { needed: 'OIDC_CLIENT_ID' },
  SMTP_URL: { needed: 'MAIL_FROM', hint: ', the address that e-mails come from' },
};
const SMS_SETTINGS = ['SMS_URL', 'SMS_ACCOUNT', 'SMS_TOKEN', 'SMS_FROM'] as const;

/**
 * Validates settings that depend on each other.
 * @param environment before parsing
 */
export function findCrossFieldErrors(environment: Environment, scope?: SettingsScope): string[] {
  return [
    ...findMissing(environment, scope),
    ...findRetirementErrors(environment),
    ...findPortErrors(environment),
    ...findOidcErrors(environment),
    ...findSmsErrors(environment),
    ...findGoogleErrors(environment),
    ...findKeyErrors(environment),
    ...findEventStoreErrors(environment, scope),
  ];
}

/** Finds what is missing: with half of two settings, nobody would notice until something does not happen. */
function findMissing(environment: Environment, scope: SettingsScope | undefined): string[] {
  return Object.entries(NEEDS).flatMap(([name, { needed, hint = '' }]) => {
    // Only the dispatcher needs the mail server.
    const isOptional = scope === 'api' && needed === 'SMTP_URL';
    const isMissing = environment[name] !== undefined && environment[needed] === undefined;
    return isMissing && !isOptional ? [`${name}: needs ${needed}${hint}`] : [];
  });
}

/** Validates the two dates against each other (VER-11). */
function findRetirementErrors(environment: Environment): string[] {
  const deprecatedAt = parseMoment(environment['API_V1_DEPRECATION_DATE'] ?? '');
  const sunsetAt = parseMoment(environment['API_V1_SUNSET_DATE'] ?? '');
  if (!deprecatedAt || !sunsetAt) return [];
  if (sunsetAt < deprecatedAt) {
    return ['API_V1_SUNSET_DATE: lies before API_V1_DEPRECATION_DATE'];
  }
  return sunsetAt < getEarliestSunset(deprecatedAt)
    ? ['API_V1_SUNSET_DATE: lies less than twelve months after API_V1_DEPRECATION_DATE']
    : [];
}

/** Refuses ports used twice before anything is started, instead of failing halfway. */
function findPortErrors(environment: Environment): string[] {
  const ports = { ...new Settings(), ...environment };
  const metrics = Number(ports.METRICS_PORT);
  return (['PORT', 'HEALTH_PORT'] as const)
    .filter((name) => metrics > 0 && Number(ports[name]) === metrics)
    .map((name) => `METRICS_PORT: is ${name} as well; metrics need one of their own`);
}

/** Requires https, except on this machine: anybody in between could sign in as anyone. */
function findOidcErrors({ OIDC_ISSUER: issuer = '' }: Environment): string[] {
  if (!URL.canParse(issuer)) return [];
  const { protocol, hostname } = new URL(issuer);
  return protocol === 'https:' || isLoopbackHost(hostname)
    ? []
    : ['OIDC_ISSUER: must start with https://'];
}

/** Requires all SMS settings or none, and https in production because of the token. */
function findSmsErrors(environment: Environment): string[] {
  const set = SMS_SETTINGS.filter((name) => environment[name] !== undefined);
  const [first] = set;
  if (first === undefined) return [];
  const missing = SMS_SETTINGS.filter((name) => !set.includes(name));
  if (missing.length > 0) return [`${first}: needs ${missing.join(', ')}`];
  const isUnencrypted =
    environment['NODE_ENV'] === 'production' && getProtocol(environment['SMS_URL']) === 'http:';
  return isUnencrypted ? ['SMS_URL: must begin with https:// in production'] : [];
}

/** Returns the protocol as the parser reads it: `HTTP://…` is http too. */
function getProtocol(url: string | undefined): string | undefined {
  return parseAbsoluteUrl(url ?? '')?.protocol;
}

/** Requires addresses that Google and its users can reach. */
function findGoogleErrors(environment: Environment): string[] {
  const { GOOGLE_WALLET_ISSUER_ID: issuer, GOOGLE_WALLET_KEY: key, PUBLIC_URL } = environment;
  if (issuer === undefined || key === undefined) return [];
  const url = environment['GOOGLE_WALLET_URL'];
  const isGoogles = parseAbsoluteUrl(url ?? '')?.hostname.endsWith('.googleapis.com') ?? true;
  if (environment['NODE_ENV'] === 'production' && !isGoogles)
    return [
      'GOOGLE_WALLET_URL: must be on googleapis.com in production, or the links to save passes would lead elsewhere; a proxy is OUTBOUND_PROXY_URL',
    ];
  // An emulator on this machine takes images over http as well.
  const isEmulator = getProtocol(url) === 'http:';
  if (isEmulator || getProtocol(PUBLIC_URL) === 'https:') return [];
  return [
    'PUBLIC_URL: must begin with https:// and be reachable from the internet when GOOGLE_WALLET_ISSUER_ID is set: Google fetches the images of passes from there, and refuses passes without them',
  ];
}

/** Requires the certificate of KurrentDB's authority where events are needed, which a migration does not. */
function findEventStoreErrors(
  { EVENT_STORE_URL: url }: Environment,
  scope: SettingsScope | undefined,
): string[] {
  if (url === undefined) return [];
  const error =
    findConnectionStringError(url) ??
    (scope === 'migrate'
      ? undefined
      : findFileError('tlsCAFile', parseConnectionString(url).caFile));
  return error === undefined ? [] : [`EVENT_STORE_URL: ${error}`];
}

function findKeyErrors({ MASTER_KEY, MASTER_KEY_PREVIOUS }: Environment): string[] {
  if (MASTER_KEY === undefined || MASTER_KEY_PREVIOUS === undefined) return [];
  const isSame = Buffer.from(MASTER_KEY, 'base64').equals(
    Buffer.from(MASTER_KEY_PREVIOUS, 'base64'),
  );
  return isSame ? ['MASTER_KEY_PREVIOUS: is the same key as MASTER_KEY'] : [];
}
