import { domainToASCII } from 'node:url';
import { ConfigError } from '#platform/kernel/config-error.js';
import {
  PlatformConfig,
  trimSlashes,
  type SettingsScope,
} from '#platform/kernel/platform-config.js';
import { Invalid, parsers } from '#platform/kernel/setting-decorators.js';
import { isBlankText, trimText } from '#platform/kernel/text.js';
import { readAppleCredentials } from './apple-credentials.js';
import { findGeocoderErrors, readGeocoder } from './geocoder-settings.js';
import { NO_EXCEPTIONS, PUSH_SERVICES } from './host-lists.js';
import { readSecretFiles } from './secret-files.js';
import type { ServiceAccount } from './service-account.js';
import { findCrossFieldErrors } from './setting-errors.js';
import type { AddressRange } from './setting-decorators.js';
import { Settings } from './settings.js';

/** The settings as the code uses them, made once at the start. */
export class Config extends PlatformConfig<Settings> {
  override readonly accountRateLimitPerMinute = this.env.STORE_RATE_LIMIT_PER_MINUTE;
  /** Networks from which the admin API may be called; empty: any. */
  readonly adminAllowedCidrs = this.env.ADMIN_API_ALLOWED_CIDRS;
  /** Signup forms in ten minutes from one IP address. */
  readonly signupsPerAddress = this.env.SIGNUPS_PER_ADDRESS;
  /** How much each store may have that has no quotas of its own. */
  readonly quotas = this.env.STORE_QUOTAS;
  /** How many stores an owner may have who creates another one in the console. */
  readonly maxStoresPerOwner = this.env.MAX_STORES_PER_OWNER;
  /** Size of the image cache in the database; evicted images are rendered again on demand. */
  readonly stripImageCacheMb = this.env.STRIP_IMAGES_KEPT_MB;
  /** Files of fonts for what the posters' own font has no letters for; null: no further fonts. */
  readonly posterFonts = this.env.POSTER_FONTS ?? null;
  /** The folder with the official buttons of the wallets. */
  readonly walletButtonsFolder: string | null = this.env.WALLET_BUTTONS_DIR ?? null;
  /** Maximum number of web cards that one process keeps up to date, in total and per address. */
  readonly openCards = {
    max: this.env.MAX_OPEN_CARDS,
    perAddress: Math.ceil(this.env.MAX_OPEN_CARDS / 50),
  };
  /** Networks that webhooks may reach besides the public internet. */
  readonly webhookAllowedCidrs = this.env.WEBHOOK_ALLOWED_CIDRS;
  /** Null: what goes outside connects directly. */
  readonly outboundProxy =
    this.env.OUTBOUND_PROXY_URL === undefined
      ? null
      : {
          ...this.env.OUTBOUND_PROXY_URL,
          /** Whether addresses of names are checked by the proxy, not here. */
          resolvesNames: this.env.OUTBOUND_PROXY_RESOLVES_NAMES,
          /** Hosts outside that are reached without it. */
          exceptions: this.env.OUTBOUND_NO_PROXY ?? NO_EXCEPTIONS,
        };
  readonly webhookAllowInsecureTargets = this.env.WEBHOOK_ALLOW_INSECURE_TARGETS;
  /** What web push may reach: the push services of browsers, never networks that are allowed for webhooks. */
  readonly webPushRules = {
    webhookAllowInsecureTargets: this.env.WEB_PUSH_ALLOW_INSECURE_ENDPOINTS,
    webhookAllowedCidrs: [] satisfies AddressRange[],
    outboundProxy: this.outboundProxy,
    /** Undefined with WEB_PUSH_ALLOW_INSECURE_ENDPOINTS, which lets any server take the place of one. */
    onlyNames: this.env.WEB_PUSH_ALLOW_INSECURE_ENDPOINTS
      ? undefined
      : [...PUSH_SERVICES, ...this.env.WEB_PUSH_SERVICES],
  };
  /** Whole days, for delivered and failed deliveries and for rendered events. */
  readonly webhookRetentionDays = this.env.WEBHOOK_RETENTION_DAYS;
  /** Days until users without a store and ended invitations are deleted. */
  readonly addressRetentionDays = this.env.ADDRESS_RETENTION_DAYS;
  /** Days until IP addresses in the audit log are deleted. */
  readonly auditAddressRetentionDays = this.env.AUDIT_ADDRESS_RETENTION_DAYS;
  /** Days until the rows of an import are deleted, so that it cannot be undone any more. */
  readonly importRetentionDays = this.env.IMPORT_RETENTION_DAYS;
  /** Days until finished card links are deleted; null: never. */
  readonly messageRetentionDays = this.env.MESSAGE_RETENTION_DAYS ?? null;
  readonly webhookTimeScale = this.env.WEBHOOK_TIME_SCALE;
  /** The mail server, which only the dispatcher needs; null: no e-mails are sent. */
  readonly mail =
    this.env.MAIL_FROM === undefined
      ? null
      : {
          from: this.env.MAIL_FROM,
          server: this.env.SMTP_URL ?? null,
          /** The envelope sender, to whom mail servers report what they could not deliver. */
          bounceAddress: this.env.BOUNCE_ADDRESS ?? getAddress(this.env.MAIL_FROM),
        };
  /** The mailbox of the bounce address; null: nobody reads it. */
  readonly bounceMailbox = this.env.BOUNCE_MAILBOX_URL ?? null;
  /** Names this client to the mail server (EHLO); undefined: by the name of the machine. */
  readonly ehloName =
    this.env.SMTP_EHLO_NAME ?? findEhloName(this.publicUrl, this.env.MAIL_FROM ?? '');
  /** Contact of security researchers as a URL; null if there is none. */
  readonly securityContact = toContactUrl(this.env.SECURITY_CONTACT);
  readonly supportContact = toSupportContact(this.env.SUPPORT_CONTACT);
  /** Null: no SMS are sent. The URL has no trailing slash. */
  readonly sms = readSms(this.env);
  /** Null: Google Wallet is not configured. */
  readonly google = readGoogleWallet(this.env);
  /** Null: Apple Wallet is not configured. */
  readonly apple = readAppleCredentials(this.env, new Date()).credentials;
  /** Whether cards can be in a wallet. */
  readonly hasWallet = this.google !== null || this.apple !== null;
  /** OpenID provider for signing in; null: passwords only. */
  readonly oidc = readOidc(this.env);
  /** Whether every user needs a second factor; else those of stores that require it. */
  readonly requiresSecondFactor = this.env.REQUIRE_SECOND_FACTOR;
  readonly geocoder = readGeocoder(this.env);
}

/** The client at a company's identity provider. */
export type CompanyClient = {
  issuer: string;
  clientId: string;
  clientSecret: string | null;
  /** Whether addresses count as confirmed when the provider does not say whether they are. */
  areEmailsConfirmed: boolean;
};

/** Settings of Google Wallet. URLs have no trailing slash. */
export type GoogleWallet = {
  issuerId: string;
  account: ServiceAccount;
  /** Suffix of every id, so that several installations can share an issuer. */
  idSuffix: string;
  url: string;
  saveUrl: string;
  callbackKeysUrl: string;
};

/** Refused, not repaired: what is at the end of an address is part of it. */
const ADDRESS_SETTING = /_(?:URL|ISSUER|ENDPOINT)$/;

/**
 * Reads and validates the environment; nothing else reads it. Blank values count as unset.
 * @param scope api: may lack what only the dispatcher needs; migrate: may lack the master key
 * @throws ConfigError that names every invalid value at once
 */
export function readConfig(environment: NodeJS.ProcessEnv, scope?: SettingsScope): Config {
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
  const { settings, errors: invalid } = parseSettings(texts);
  const errors = [
    ...fileErrors,
    ...invalid,
    ...findCrossFieldErrors(texts, scope),
    ...findGeocoderErrors(texts),
    // How they fit together can be said only once each can be read.
    ...(invalid.length > 0 ? [] : readAppleCredentials(settings, new Date()).errors),
  ];
  if (errors.length > 0) {
    throw new ConfigError(`Settings that cannot be used:\n  ${errors.join('\n  ')}`);
  }
  return new Config(settings, scope);
}

/** With a dot, and neither an address nor a literal of one. */
const FULL_NAME = /^(?:[a-z0-9-]{1,63}\.)+(?!\d+$)[a-z0-9-]{1,63}$/;
/**
 * Finds the name for EHLO (RFC 5321, section 4.1.1.1). That of a container has no dot, and mail servers such as
 * Google's relay refuse it, as they refuse the literal of an address.
 */
function findEhloName(publicUrl: string, mailFrom: string): string | undefined {
  const domain = domainToASCII(/@([^\s@>]+)>?$/.exec(mailFrom)?.[1] ?? '');
  return [new URL(publicUrl).hostname, domain]
    .map((name) => name.toLowerCase().replace(/\.$/, ''))
    .find((name) => FULL_NAME.test(name));
}

/** Extracts the address. @param from as in `Inkpad <inkpad@shop.example>` */
export function getAddress(from: string): string {
  return /([^\s<>@]+@[^\s<>@]+)>?$/.exec(from)?.[1] ?? from;
}

function toContactUrl(contact: string | undefined): string | null {
  if (contact === undefined) return null;
  return contact.startsWith('https://') ? contact : `mailto:${contact}`;
}

/** Returns the contact as a link and as the text of the link. */
function toSupportContact(contact: string | undefined): { href: string; text: string } | null {
  const href = toContactUrl(contact);
  return href === null || contact === undefined ? null : { href, text: contact };
}

/** Reads the client at the company's identity provider. */
function readOidc(env: Settings): CompanyClient | null {
  const { OIDC_ISSUER: issuer, OIDC_CLIENT_ID: clientId, OIDC_CLIENT_SECRET: secret } = env;
  if (issuer === undefined || clientId === undefined) return null;
  return {
    issuer,
    clientId,
    clientSecret: secret ?? null,
    areEmailsConfirmed: env.OIDC_EMAILS_CONFIRMED,
  };
}

function readSms(
  env: Settings,
): { url: string; account: string; token: string; from: string } | null {
  const { SMS_URL: url, SMS_ACCOUNT: account, SMS_TOKEN: token, SMS_FROM: from } = env;
  if (!url || !account || !token || !from) return null;
  return { url: trimSlashes(url), account, token, from };
}

function readGoogleWallet(env: Settings): GoogleWallet | null {
  const { GOOGLE_WALLET_ISSUER_ID: issuerId, GOOGLE_WALLET_KEY: account } = env;
  if (issuerId === undefined || account === undefined) return null;
  const { hostname, origin } = new URL(env.GOOGLE_WALLET_URL);
  const payOrigin = hostname.endsWith('.googleapis.com') ? 'https://pay.google.com' : origin;
  return {
    issuerId,
    account,
    idSuffix: env.GOOGLE_WALLET_ID_SUFFIX,
    url: trimSlashes(env.GOOGLE_WALLET_URL),
    saveUrl: `${payOrigin}/gp/v/save`,
    callbackKeysUrl: `${payOrigin}/gp/m/issuer/keys`,
  };
}

function parseSettings(environment: Record<string, string | undefined>) {
  const settings = new Settings();
  const errors: string[] = [];
  for (const [name, parse] of parsers) {
    const text = environment[name];
    if (text === undefined) continue;
    const value = parse(text);
    if (value instanceof Invalid) errors.push(`${name}: ${value.message}`);
    else Object.assign(settings, { [name]: value });
  }
  return { settings, errors };
}
