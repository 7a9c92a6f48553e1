import { X509Certificate, type KeyObject } from 'node:crypto';
import { trimSlashes } from '#platform/kernel/platform-config.js';
import { parsePrivateKey } from './setting-decorators.js';
import type { Settings } from './settings.js';

/** Keys and certificates that sign passes and authenticate to Apple's push service. */
export type AppleCredentials = {
  /** UID of the certificate; `teamId` is its OU. */
  passTypeId: string;
  teamId: string;
  /** PEM; its key is RSA. */
  certificate: string;
  key: KeyObject;
  /** PEM: Apple's intermediate that issued the certificate. */
  wwdr: string;
  /** When the first of the two certificates expires. Phones refuse passes signed after that. */
  expiresAt: Date;
  push: {
    /** Without a trailing slash. */
    url: string;
    /** PEM; null means the authorities that Node.js trusts. */
    ca: string | null;
    /** Null: the pass certificate authenticates instead. */
    token: { key: KeyObject; id: string } | null;
  };
};

type AppleSettings = Pick<
  Settings,
  'PUBLIC_URL' | Extract<keyof Settings, `APPLE_${string}` | `APNS_${string}`>
>;

const REQUIRED_SETTINGS = ['APPLE_PASS_CERT', 'APPLE_PASS_KEY', 'APPLE_WWDR_CERT'] as const;
const DEPENDENT_SETTINGS = ['APPLE_PASS_KEY_PASSPHRASE', 'APNS_KEY'] as const;

/**
 * Reads the settings of Apple Wallet and reports everything that would make a phone refuse every pass without an
 * error. An expired certificate is not an error here: the service must still start.
 * @returns null credentials where Apple Wallet is not configured
 */
export function readAppleCredentials(
  settings: AppleSettings,
  now: Date,
): { credentials: AppleCredentials | null; errors: string[] } {
  const { APPLE_PASS_CERT, APPLE_PASS_KEY, APPLE_WWDR_CERT } = settings;
  if (APPLE_PASS_CERT === undefined || !APPLE_PASS_KEY || !APPLE_WWDR_CERT) {
    return { credentials: null, errors: findMissingSettings(settings) };
  }
  const certificate = new X509Certificate(APPLE_PASS_CERT);
  const wwdr = new X509Certificate(APPLE_WWDR_CERT);
  const key = parsePassKey(APPLE_PASS_KEY, settings.APPLE_PASS_KEY_PASSPHRASE);
  const token = parsePushToken(settings);
  if (typeof key === 'string' || typeof token === 'string') {
    const errors = [key, token].filter((result) => typeof result === 'string');
    return { credentials: null, errors };
  }
  const { UID: passTypeId = '', OU: teamId = '' } = parseDistinguishedName(certificate.subject);
  const errors = [
    ...findCertificateErrors(certificate, { passTypeId, teamId }, now),
    ...(certificate.checkIssued(wwdr) && certificate.verify(wwdr.publicKey)
      ? []
      : [
          `APPLE_WWDR_CERT: did not issue the pass certificate. That was ${getIssuerName(certificate)}: get it from https://www.apple.com/certificateauthority/`,
        ]),
    ...(certificate.checkPrivateKey(key)
      ? []
      : ['APPLE_PASS_KEY: is not the key of APPLE_PASS_CERT']),
    ...(settings.PUBLIC_URL?.startsWith('https://')
      ? []
      : ['APPLE_PASS_CERT: needs a PUBLIC_URL with https://, because phones require it']),
  ];
  if (errors.length > 0) return { credentials: null, errors };
  const expiryTimes = [certificate, wwdr].map(({ validTo }) => Date.parse(validTo));
  return {
    errors: [],
    credentials: {
      passTypeId,
      teamId,
      certificate: APPLE_PASS_CERT,
      key,
      wwdr: APPLE_WWDR_CERT,
      expiresAt: new Date(Math.min(...expiryTimes)),
      push: {
        url: trimSlashes(settings.APNS_URL),
        ca: settings.APNS_CA_CERT ?? null,
        token,
      },
    },
  };
}

function findMissingSettings(settings: AppleSettings): string[] {
  const missing = REQUIRED_SETTINGS.filter((name) => settings[name] === undefined);
  if (missing.length < REQUIRED_SETTINGS.length) {
    return [
      `${missing.join(', ')}: needed for passes, as some of ${REQUIRED_SETTINGS.join(', ')} are set`,
    ];
  }
  return DEPENDENT_SETTINGS.filter((name) => settings[name] !== undefined).map(
    (name) => `${name}: needs ${REQUIRED_SETTINGS.join(', ')}`,
  );
}

function findCertificateErrors(
  certificate: X509Certificate,
  { passTypeId, teamId }: { passTypeId: string; teamId: string },
  now: Date,
): string[] {
  if (!passTypeId.startsWith('pass.') || teamId === '') {
    return ['APPLE_PASS_CERT: is not a Pass Type ID certificate'];
  }
  return Date.parse(certificate.validFrom) > now.getTime()
    ? [`APPLE_PASS_CERT: is not valid before ${certificate.validFrom}`]
    : [];
}

/** @returns what is wrong with it, if something is */
function parsePassKey(pem: string, passphrase: string | undefined): KeyObject | string {
  const isEncrypted = pem.includes('ENCRYPTED');
  if (isEncrypted && passphrase === undefined) {
    return 'APPLE_PASS_KEY: is encrypted: set APPLE_PASS_KEY_PASSPHRASE';
  }
  const key = parsePrivateKey(pem, passphrase);
  if (!key) {
    return isEncrypted
      ? 'APPLE_PASS_KEY_PASSPHRASE: does not open APPLE_PASS_KEY'
      : 'APPLE_PASS_KEY: is not a private key';
  }
  return key.asymmetricKeyType === 'rsa'
    ? key
    : 'APPLE_PASS_KEY: is no RSA key, and Apple issues pass certificates for no other';
}

/** @returns what is wrong with it, if something is */
function parsePushToken({ APNS_KEY, APNS_KEY_ID }: AppleSettings): AppleToken | string {
  if (APNS_KEY === undefined) {
    return APNS_KEY_ID === undefined ? null : 'APNS_KEY_ID: needs APNS_KEY';
  }
  if (APNS_KEY_ID === undefined) return 'APNS_KEY: needs APNS_KEY_ID, which its page shows';
  const key = parsePrivateKey(APNS_KEY);
  return key?.asymmetricKeyDetails?.namedCurve === 'prime256v1'
    ? { key, id: APNS_KEY_ID }
    : 'APNS_KEY: is not a key of the push service (.p8)';
}

type AppleToken = AppleCredentials['push']['token'];

function getIssuerName({ issuer }: X509Certificate): string {
  const { CN = 'somebody unnamed', OU } = parseDistinguishedName(issuer);
  return OU === undefined ? CN : `${CN} (${OU})`;
}

/** Parses a distinguished name as Node.js writes it: one attribute a line. */
function parseDistinguishedName(name: string): Record<string, string> {
  return Object.fromEntries(
    name.split('\n').map((line) => {
      const [type = '', ...value] = line.split('=');
      return [type, value.join('=')];
    }),
  );
}
