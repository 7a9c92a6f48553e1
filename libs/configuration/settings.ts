import { PlatformSettings } from '#platform/kernel/platform-settings.js';
import {
  Describe,
  Flag,
  Matching,
  OneOf,
  parsers,
  Secret,
  Setting,
  Text,
  Url,
  UrlSetting,
  WholeNumber,
} from '#platform/kernel/setting-decorators.js';
import { parseNames, parseProxyExceptions, type ProxyExceptions } from './host-lists.js';
import { parseServiceAccount, type ServiceAccount } from './service-account.js';
import {
  Certificate,
  parseFactor,
  parseMailbox,
  parseMailServer,
  parsePem,
  parsePosterFonts,
  parseProxy,
  Ranges,
  type AddressRange,
  type MailboxAccess,
  type PosterFontFiles,
  type ServerAccess,
} from './setting-decorators.js';
import { DEFAULT_QUOTAS, parseStoreQuotas, QUOTA_NAMES, type StoreQuotas } from './store-quotas.js';

const GEOCODERS = ['offline', 'nominatim', 'photon', 'pelias', 'none'] as const;
const Contact = Matching(
  /^(https:\/\/[^\s\p{C}\\]+|[^\s<>@,:]+@[^\s<>@,]+)$/u,
  'must be an e-mail address or a URL that begins with https://',
);

/** The environment variables by name, parsed: those of the product, and those that the platform declares. */
export class Settings extends PlatformSettings {
  @Describe(`Requests per minute for one store, with all tokens together.`)
  @WholeNumber(1)
  STORE_RATE_LIMIT_PER_MINUTE = 3000;
  @Describe(`The networks that may call the admin API (docs/admin-api.md). Empty: any.`)
  @Ranges('10.0.0.0/8')
  ADMIN_API_ALLOWED_CIDRS: AddressRange[] = [];
  @Describe(`
    Signup forms in ten minutes from one IP address, which a whole shop may share. Six times as
    many complete ones are accepted for one poster.
  `)
  @WholeNumber(1, 1_000_000)
  SIGNUPS_PER_ADDRESS = 100;
  @Describe(`
    How much each store may have, for what differs from these: customers=5000,sms_per_day=100. One
    store can have quotas of its own (docs/operating/configure.md).
  `)
  @Setting(
    parseStoreQuotas,
    `must be quotas such as customers=5000,cards=100, of ${QUOTA_NAMES.join(', ')}`,
  )
  STORE_QUOTAS: StoreQuotas = DEFAULT_QUOTAS;
  @Describe(`
    Stores that one owner may have before only you can create another one for them; 0: only you
    create stores.
  `)
  @WholeNumber(0, 10_000)
  MAX_STORES_PER_OWNER = 10;
  @Describe(`
    Web cards that one api process keeps up to date at a time; a fiftieth of them for one IP
    address.
  `)
  @WholeNumber(1, 1_000_000)
  MAX_OPEN_CARDS = 5_000;
  @Describe(`
    Space for rendered images of cards in the database, in MB; others are rendered again on
    request.
  `)
  @WholeNumber(1, 100_000)
  STRIP_IMAGES_KEPT_MB = 1024;
  @Describe(`
    Fonts (files in TTF or OTF) for letters on posters that the built-in Inter does not have, before
    the Noto fonts that Inkpad comes with: one for all letters, or a regular and a bold one,
    separated by a comma.
  `)
  @Setting(parsePosterFonts, 'must be one file, or two separated by a comma')
  POSTER_FONTS?: PosterFontFiles;
  @Describe(`
    A folder with the official buttons of the wallets, such as apple-en.svg and google-en.svg; without
    it pages have plain buttons.
  `)
  @Text()
  WALLET_BUTTONS_DIR?: string;
  @Describe(`
    Receivers of webhooks outside the public internet, over https: ranges of your own network,
    e.g. 10.1.0.0/16,fd12::/48. Anyone who can create a subscription can send requests there.
  `)
  @Ranges('10.1.0.0/16')
  WEBHOOK_ALLOWED_CIDRS: AddressRange[] = [];
  @Describe(`
    An HTTP proxy for what leaves your network, by CONNECT: http://name:secret@proxy.internal:3128.
  `)
  @Secret()
  @UrlSetting(
    ['http:', 'https:'],
    parseProxy,
    'must name a host alone, and have %40 and the like for special characters of name and password',
  )
  OUTBOUND_PROXY_URL?: ServerAccess;
  @Describe(`
    Lets the proxy resolve all names, for networks without public DNS. Inkpad then checks no address
    of a receiver's name: the proxy must refuse those of your network.
  `)
  @Flag()
  OUTBOUND_PROXY_RESOLVES_NAMES = false;
  @Describe(`Hosts outside to reach without the proxy, as in NO_PROXY: mail.example,192.0.2.0/24.`)
  @Setting(parseProxyExceptions, 'must be names, addresses or ranges, separated by commas')
  OUTBOUND_NO_PROXY?: ProxyExceptions;
  @Describe(`
    Push services of browsers besides those of Google, Mozilla, Apple and Microsoft, at which web cards
    may send notifications: push.example,.push.example.
  `)
  @Setting(parseNames, 'must be names of hosts, separated by commas')
  WEB_PUSH_SERVICES: string[] = [];
  @Describe(`Days to retain events, and deliveries once they are delivered or failed.`)
  @WholeNumber(1, 3650)
  WEBHOOK_RETENTION_DAYS = 30;
  @Describe(`
    Days until the addresses of removed users, of users without a store and of former
    invitations are deleted.
  `)
  @WholeNumber(1, 3650)
  ADDRESS_RETENTION_DAYS = 30;
  @Describe(`
    Days until IP addresses in the audit log are deleted. The entries themselves stay for ever.
  `)
  @WholeNumber(7, 3650)
  AUDIT_ADDRESS_RETENTION_DAYS = 90;
  @Describe(`Days until rows of imported files are deleted; until then an import can be undone.`)
  @WholeNumber(1, 365)
  IMPORT_RETENTION_DAYS = 30;
  @Describe(`
    Days until card links and messages to holders are deleted that were sent, failed or dropped. Unset: never.
  `)
  @WholeNumber(7, 3650)
  MESSAGE_RETENTION_DAYS?: number;
  @Describe(`
    Mail server for card links to customers and warnings to users, e.g.
    smtps://name:password@mail.example or, without a password, smtp://mail.internal:25. Unset:
    warnings are only logged, and card links wait in the store's outbox. Percent-encode special
    characters in the password.
  `)
  @Secret()
  @UrlSetting(
    ['smtp:', 'smtps:'],
    parseMailServer,
    'must name a host, and have %40 and the like for special characters of name and password',
  )
  SMTP_URL?: ServerAccess;
  @Describe(`Sender of these e-mails, e.g. Inkpad <inkpad@shop.example>. Required with SMTP_URL.`)
  @Matching(
    /^([^<>@\r\n]+ <[^\s<>@]+@[^\s<>@]+>|[^\s<>@]+@[^\s<>@]+)$/,
    'must be like inkpad@shop.example or Inkpad <inkpad@shop.example>',
  )
  MAIL_FROM?: string;
  @Describe(`
    The name by which Inkpad introduces itself to the mail server (EHLO), e.g. mail.shop.example.
    Unset: the host of PUBLIC_URL if it is a public name, else the domain of MAIL_FROM.
  `)
  @Matching(
    /^(?=.{1,253}$)(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?$/,
    'must be a host name with a dot, such as mail.shop.example',
  )
  SMTP_EHLO_NAME?: string;
  @Describe(`
    Where mail servers report e-mails that they could not deliver (the envelope sender), e.g.
    bounces@shop.example. {id} stands for the id of the e-mail, e.g. bounces+{id}@shop.example, so
    that reports are recognized behind every relay. Unset: the address in MAIL_FROM.
  `)
  @Matching(
    /^(?:[^\s<>@,:{}]{1,64}|(?=[^@]{1,32}@)[^\s<>@,:{}]*\{id\}[^\s<>@,:{}]*)@[^\s<>@,{}]+$/,
    'must be an e-mail address, which may have {id} and 28 more characters before the @',
  )
  BOUNCE_ADDRESS?: string;
  @Describe(`
    The mailbox of that address, which Inkpad reads by IMAP, e.g.
    imaps://name:password@mail.example/Bounces. It should get nothing else: what was read is marked
    as seen. Without a folder: INBOX. Unset: only refusals while an e-mail is handed over are known.
  `)
  @Secret()
  @UrlSetting(
    ['imaps:'],
    parseMailbox,
    'must name a host, a user and a password, and have %40 and the like for special characters',
  )
  BOUNCE_MAILBOX_URL?: MailboxAccess;
  @Describe(`
    Contact for security researchers: an e-mail address, or the https URL of a form. Published
    at /.well-known/security.txt; unset: there is none.
  `)
  @Contact
  SECURITY_CONTACT?: string;
  @Describe(`
    Whom users of the console can ask: an e-mail address, or the https URL of a page. Shown where
    only the operator can help, such as after a forgotten password without a mail server; unset:
    none.
  `)
  @Contact
  SUPPORT_CONTACT?: string;
  @Describe(`
    SMS with card links to customers who have no e-mail address: Twilio (https://api.twilio.com)
    or a provider with the same interface, the SID of the account, its token (or
    SMS_TOKEN_FILE), and a number such as +4915112345678, a name of at most 11 letters and
    digits, or the SID of a messaging service. All four or none; unset: they wait in the store's
    outbox.
  `)
  @Url('http:', 'https:')
  SMS_URL?: string;
  @Matching(/^[A-Za-z0-9_-]{1,64}$/, 'must be the SID of the account') SMS_ACCOUNT?: string;
  @Secret()
  @Text()
  SMS_TOKEN?: string;
  @Matching(
    /^(\+[1-9]\d{4,14}|\d{3,8}|MG[0-9a-f]{32}|(?=.*[A-Za-z])[A-Za-z0-9 ]{1,11})$/,
    'must be a number such as +4915112345678, a name of at most 11 letters and digits, or the SID of a messaging service',
  )
  SMS_FROM?: string;
  @Describe(`
    The geocoder for addresses of locations: offline (towns that Inkpad comes with), nominatim,
    photon or pelias (a server with that protocol), or none. Only servers know streets and
    buildings; see docs/operating/connect.md.
  `)
  @OneOf(GEOCODERS)
  GEOCODER: (typeof GEOCODERS)[number] = 'offline';
  @Describe(`
    The server, e.g. https://nominatim.example, and its key, if it needs one (GEOCODER_KEY_FILE:
    in a file).
  `)
  @Url('http:', 'https:')
  GEOCODER_URL?: string;
  @Secret()
  @Text()
  GEOCODER_KEY?: string;
  @Describe(`
    An e-mail address or web page of yours, by which the server can reach you. Part of the
    User-Agent.
  `)
  @Matching(/^[\x20-\x27\x2a-\x7e]{1,200}$/, 'must be an e-mail address or a web page')
  GEOCODER_CONTACT?: string;
  @Describe(`Of all processes together. Public servers allow one.`)
  @WholeNumber(1, 1_000)
  GEOCODER_REQUESTS_PER_SECOND = 1;
  @Describe(`
    Google Wallet: the number of the issuer account, and the JSON key of a service account that
    the issuer has invited, as text or as a file. Needs PUBLIC_URL with https. Unset: Google's
    links lead to the card's own page.
  `)
  @Matching(/^\d{4,25}$/, 'must be the number that the Google Pay & Wallet console shows')
  GOOGLE_WALLET_ISSUER_ID?: string;
  @Secret()
  @Setting(parseServiceAccount, 'must be the JSON of a service account key')
  GOOGLE_WALLET_KEY?: ServiceAccount;
  @Describe(`
    Ends the ids of classes and objects. Installations that share an issuer, such as staging,
    each need their own; it stays for ever, since passes cannot be renamed.
  `)
  @Matching(/^[A-Za-z0-9.-]{1,32}$/, 'must match [A-Za-z0-9.-]{1,32}')
  GOOGLE_WALLET_ID_SUFFIX = 'inkpad';
  @Describe(
    `Google's API, the only one in production; an emulator has the save page and callback keys too.`,
  )
  @Url('http:', 'https:')
  GOOGLE_WALLET_URL = 'https://walletobjects.googleapis.com/walletobjects/v1';
  @Describe(`
    Apple Wallet (docs/operating/connect.md): the certificate of a pass type with its key, and Apple's
    intermediate that issued it, in PEM, here (with \\n for line ends) or as
    APPLE_PASS_CERT_FILE and so on. Needs a PUBLIC_URL with https://. Unset: the links for Apple
    Wallet lead to the web card.
  `)
  @Secret()
  @Certificate()
  APPLE_PASS_CERT?: string;
  @Secret()
  @Setting(parsePem, 'must be a private key in PEM')
  APPLE_PASS_KEY?: string;
  @Describe(`Only for an encrypted key.`)
  @Secret()
  @Text()
  APPLE_PASS_KEY_PASSPHRASE?: string;
  @Secret()
  @Certificate()
  APPLE_WWDR_CERT?: string;
  @Describe(`Apple's push service, and the certificate authority to trust in tests.`)
  @Url('https:')
  APNS_URL = 'https://api.push.apple.com';
  @Secret()
  @Certificate()
  APNS_CA_CERT?: string;
  @Describe(
    `A key of the push service (.p8) and its id, to push with instead of the pass certificate.`,
  )
  @Secret()
  @Setting(parsePem, 'must be a private key in PEM (.p8)')
  APNS_KEY?: string;
  @Text() APNS_KEY_ID?: string;
  @Describe(`
    Sign-in with a company's identity provider (OpenID Connect): its URL and the client
    registered there, with PUBLIC_URL/app/sign-in/company/done as redirect URI. Unset: people
    sign in with a password.
  `)
  @Url('https:', 'http:')
  OIDC_ISSUER?: string;
  @Text() OIDC_CLIENT_ID?: string;
  @Secret()
  @Text()
  OIDC_CLIENT_SECRET?: string;
  @Describe(`
    For a provider that never says whether an address is confirmed (email_verified), such as
    Microsoft Entra ID: true if only the company's administrators can enter addresses there
    (docs/console.md).
  `)
  @Flag()
  OIDC_EMAILS_CONFIRMED = false;
  @Describe(`
    Whether every user of the console needs two-step sign-in (docs/console.md). An owner can
    require it for one store.
  `)
  @Flag()
  REQUIRE_SECOND_FACTOR = false;
  @Describe(`
    Development only: allows webhooks over http and to this machine (loopback); other addresses:
    WEBHOOK_ALLOWED_CIDRS.
  `)
  @Flag()
  WEBHOOK_ALLOW_INSECURE_TARGETS = false;
  @Describe(`Development only: browsers may be notified at addresses on http and on this machine.`)
  @Flag()
  WEB_PUSH_ALLOW_INSECURE_ENDPOINTS = false;
  @Describe(`
    Tests only: divides the waits between attempts and the three days until a subscription is
    disabled.
  `)
  @Setting(parseFactor, 'must be a number of at least 1')
  WEBHOOK_TIME_SCALE = 1;
}

/** Names of all settings, for the test that compares docker-compose.yml with them. */
export const SETTINGS: readonly string[] = [...parsers.keys()];
