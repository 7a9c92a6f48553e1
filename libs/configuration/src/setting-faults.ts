import { parseAbsoluteUrl } from '#kernel/absolute-url.js';
import { earliestSunset } from '#kernel/retirement.js';
import { momentOf, Settings } from './settings.js';

/** Processes that need less than all settings. */
export type Reader = 'api' | 'migrate';

type Given = Readonly<Record<string, string | undefined>>;

const SMS_SETTINGS = ['SMS_URL', 'SMS_ACCOUNT', 'SMS_TOKEN', 'SMS_FROM'] as const;

/** Validates settings that depend on each other. @param given before they were read */
export function faultsTogether(given: Given, reader?: Reader): string[] {
  return [
    ...retirementFaults(given),
    ...portFaults(given),
    ...oidcFaults(given),
    ...mailFaults(given, reader),
    ...smsFaults(given),
    ...googleFaults(given),
    ...keyFaults(given),
  ];
}

/** How the two dates relate (contract section 9); each alone is checked above. */
function retirementFaults(given: Given): string[] {
  const { API_V1_DEPRECATION_DATE: announced, API_V1_SUNSET_DATE: end } = given;
  if (end !== undefined && announced === undefined) {
    return ['API_V1_SUNSET_DATE: needs API_V1_DEPRECATION_DATE, at least twelve months before it'];
  }
  const deprecatedAt = momentOf(announced ?? '');
  const sunsetAt = momentOf(end ?? '');
  if (!deprecatedAt || !sunsetAt) return [];
  if (sunsetAt < deprecatedAt) {
    return ['API_V1_SUNSET_DATE: lies before API_V1_DEPRECATION_DATE'];
  }
  return sunsetAt < earliestSunset(deprecatedAt)
    ? ['API_V1_SUNSET_DATE: lies less than twelve months after API_V1_DEPRECATION_DATE']
    : [];
}

/** Refused before anything is started: one of the two would find its port taken when half of the process is up. */
function portFaults(given: Given): string[] {
  const ports = { ...new Settings(), ...given };
  const metrics = Number(ports.METRICS_PORT);
  return (['PORT', 'HEALTH_PORT'] as const)
    .filter((name) => metrics > 0 && Number(ports[name]) === metrics)
    .map((name) => `METRICS_PORT: is ${name} as well; metrics need one of their own`);
}

/** Anybody in between could sign in as anybody, except on this machine. */
function oidcFaults({
  OIDC_ISSUER: issuer,
  OIDC_CLIENT_ID: id,
  OIDC_CLIENT_SECRET: secret,
}: Given): string[] {
  if (issuer === undefined) {
    if (id === undefined && secret === undefined) return [];
    return [`${id === undefined ? 'OIDC_CLIENT_SECRET' : 'OIDC_CLIENT_ID'}: needs OIDC_ISSUER`];
  }
  if (id === undefined) return ['OIDC_ISSUER: needs OIDC_CLIENT_ID'];
  if (!URL.canParse(issuer)) return [];
  const { protocol, hostname } = new URL(issuer);
  const isHere = ['localhost', '127.0.0.1', '[::1]'].includes(hostname);
  return protocol === 'https:' || isHere ? [] : ['OIDC_ISSUER: must start with https://'];
}

/** One without the other would be a mistake that nobody notices until a mail is missed. */
function mailFaults(
  { SMTP_URL, MAIL_FROM, CHECKPOINT_MAIL_TO }: Given,
  reader: Reader | undefined,
): string[] {
  if (reader === 'api' && SMTP_URL === undefined) return [];
  if (CHECKPOINT_MAIL_TO !== undefined && SMTP_URL === undefined) {
    return ['CHECKPOINT_MAIL_TO: needs SMTP_URL'];
  }
  if ((SMTP_URL === undefined) === (MAIL_FROM === undefined)) return [];
  return SMTP_URL === undefined
    ? ['MAIL_FROM: needs SMTP_URL']
    : ['SMTP_URL: needs MAIL_FROM, the address that mails come from'];
}

/** All or none, and the token only to where nobody can read it on the way. */
function smsFaults(given: Given): string[] {
  const set = SMS_SETTINGS.filter((name) => given[name] !== undefined);
  const [first] = set;
  if (first === undefined) return [];
  const missing = SMS_SETTINGS.filter((name) => !set.includes(name));
  if (missing.length > 0) return [`${first}: needs ${missing.join(', ')}`];
  const open = given['NODE_ENV'] === 'production' && protocolOf(given['SMS_URL']) === 'http:';
  return open ? ['SMS_URL: must begin with https:// in production'] : [];
}

/** As the parser reads it: `HTTP://…` is http too. */
function protocolOf(url: string | undefined): string | undefined {
  return parseAbsoluteUrl(url ?? '')?.protocol;
}

/** Google is either set up whole or not at all: half of it would look like an outage. */
function googleFaults(given: Given): string[] {
  const { GOOGLE_WALLET_ISSUER_ID: issuer, GOOGLE_WALLET_KEY: key, PUBLIC_URL } = given;
  if (issuer === undefined && key === undefined) return [];
  if (key === undefined) return ['GOOGLE_WALLET_ISSUER_ID: needs GOOGLE_WALLET_KEY_FILE'];
  if (issuer === undefined) return ['GOOGLE_WALLET_KEY: needs GOOGLE_WALLET_ISSUER_ID'];
  // A counterpart on this machine takes images over http as well.
  const isCounterpart = protocolOf(given['GOOGLE_WALLET_URL']) === 'http:';
  if (isCounterpart || protocolOf(PUBLIC_URL) === 'https:') return [];
  return [
    'PUBLIC_URL: must begin with https:// and be reachable from the internet when GOOGLE_WALLET_ISSUER_ID is set: Google fetches the images of passes from there, and refuses passes without them',
  ];
}

function keyFaults({ MASTER_KEY, MASTER_KEY_PREVIOUS }: Given): string[] {
  if (MASTER_KEY_PREVIOUS === undefined) return [];
  if (MASTER_KEY === undefined) return ['MASTER_KEY_PREVIOUS: needs MASTER_KEY, the new key'];
  const same = Buffer.from(MASTER_KEY, 'base64').equals(Buffer.from(MASTER_KEY_PREVIOUS, 'base64'));
  return same ? ['MASTER_KEY_PREVIOUS: is the same key as MASTER_KEY'] : [];
}
