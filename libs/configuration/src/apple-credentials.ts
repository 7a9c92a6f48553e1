import { createPrivateKey, X509Certificate, type KeyObject } from 'node:crypto';

/** What signs passes, and what Apple's push service knows this service by. */
export type AppleCredentials = {
  /** As in the certificate: its UID and OU. */
  passTypeId: string;
  teamId: string;
  /** PEM; of one RSA key. */
  certificate: string;
  key: KeyObject;
  /** PEM: Apple's intermediate that issued the certificate. */
  wwdr: string;
  /** When the first of the two certificates ends. Passes signed after that are refused by phones. */
  expiresAt: Date;
  push: {
    /** Without a trailing slash. */
    url: string;
    /** PEM; null: what Node.js trusts. */
    ca: string | null;
    /** Null: the pass certificate itself is shown. */
    token: { key: KeyObject; id: string } | null;
  };
};

/** As the environment gives them; texts in PEM have real line ends. */
export type AppleSettings = {
  PUBLIC_URL?: string;
  APPLE_PASS_CERT?: string;
  APPLE_PASS_KEY?: string;
  APPLE_PASS_KEY_PASSPHRASE?: string;
  APPLE_WWDR_CERT?: string;
  APPLE_PASS_TYPE_ID?: string;
  APPLE_TEAM_ID?: string;
  APNS_URL: string;
  APNS_CA_CERT?: string;
  APNS_KEY?: string;
  APNS_KEY_ID?: string;
};

const TOGETHER = ['APPLE_PASS_CERT', 'APPLE_PASS_KEY', 'APPLE_WWDR_CERT'] as const;
const NEED_THEM = [
  'APPLE_PASS_KEY_PASSPHRASE',
  'APPLE_PASS_TYPE_ID',
  'APPLE_TEAM_ID',
  'APNS_KEY',
] as const;

/**
 * Everything that would make a phone refuse every pass without saying why. That a certificate has expired is no fault
 * of the settings: it must not keep a shop from stamping.
 * @returns null: passes for Apple Wallet are not wanted
 */
export function appleCredentials(
  settings: AppleSettings,
  now: Date,
): { credentials: AppleCredentials | null; faults: string[] } {
  const { APPLE_PASS_CERT, APPLE_PASS_KEY, APPLE_WWDR_CERT } = settings;
  if (APPLE_PASS_CERT === undefined || !APPLE_PASS_KEY || !APPLE_WWDR_CERT) {
    return { credentials: null, faults: incomplete(settings) };
  }
  const certificate = new X509Certificate(APPLE_PASS_CERT);
  const wwdr = new X509Certificate(APPLE_WWDR_CERT);
  const key = keyOf(APPLE_PASS_KEY, settings.APPLE_PASS_KEY_PASSPHRASE);
  const token = pushToken(settings);
  if (typeof key === 'string' || typeof token === 'string') {
    const faults = [key, token].filter((read) => typeof read === 'string');
    return { credentials: null, faults };
  }
  const { UID: passTypeId = '', OU: teamId = '' } = namesIn(certificate.subject);
  const wrong = [
    ...wrongCertificate(certificate, { passTypeId, teamId }, settings, now),
    ...(certificate.checkIssued(wwdr) && certificate.verify(wwdr.publicKey)
      ? []
      : [
          `APPLE_WWDR_CERT: did not issue the pass certificate. That was ${issuerOf(certificate)}: get it from https://www.apple.com/certificateauthority/`,
        ]),
    ...(certificate.checkPrivateKey(key)
      ? []
      : ['APPLE_PASS_KEY: is not the key of APPLE_PASS_CERT']),
    ...(settings.PUBLIC_URL?.startsWith('https://')
      ? []
      : ['APPLE_PASS_CERT: needs a PUBLIC_URL with https://, which phones insist on']),
  ];
  if (wrong.length > 0) return { credentials: null, faults: wrong };
  const ends = [certificate, wwdr].map(({ validTo }) => Date.parse(validTo));
  return {
    faults: [],
    credentials: {
      passTypeId,
      teamId,
      certificate: APPLE_PASS_CERT,
      key,
      wwdr: APPLE_WWDR_CERT,
      expiresAt: new Date(Math.min(...ends)),
      push: {
        url: settings.APNS_URL.replace(/\/+$/, ''),
        ca: settings.APNS_CA_CERT ?? null,
        token,
      },
    },
  };
}

function incomplete(settings: AppleSettings): string[] {
  const missing = TOGETHER.filter((name) => settings[name] === undefined);
  if (missing.length < TOGETHER.length) {
    return [`${missing.join(', ')}: needed for passes, as some of ${TOGETHER.join(', ')} are set`];
  }
  return NEED_THEM.filter((name) => settings[name] !== undefined).map(
    (name) => `${name}: needs ${TOGETHER.join(', ')}`,
  );
}

function wrongCertificate(
  certificate: X509Certificate,
  { passTypeId, teamId }: { passTypeId: string; teamId: string },
  { APPLE_PASS_TYPE_ID, APPLE_TEAM_ID }: AppleSettings,
  now: Date,
): string[] {
  if (!passTypeId.startsWith('pass.') || teamId === '') {
    return ['APPLE_PASS_CERT: is not a Pass Type ID certificate'];
  }
  const faults: string[] = [];
  if (APPLE_PASS_TYPE_ID !== undefined && APPLE_PASS_TYPE_ID !== passTypeId) {
    faults.push(`APPLE_PASS_TYPE_ID: the certificate is for ${passTypeId}`);
  }
  if (APPLE_TEAM_ID !== undefined && APPLE_TEAM_ID !== teamId) {
    faults.push(`APPLE_TEAM_ID: the certificate belongs to team ${teamId}`);
  }
  if (Date.parse(certificate.validFrom) > now.getTime()) {
    faults.push(`APPLE_PASS_CERT: is not valid before ${certificate.validFrom}`);
  }
  return faults;
}

/** @returns what is wrong with it, if something is */
function keyOf(pem: string, passphrase: string | undefined): KeyObject | string {
  const isEncrypted = pem.includes('ENCRYPTED');
  if (isEncrypted && passphrase === undefined) {
    return 'APPLE_PASS_KEY: is encrypted: set APPLE_PASS_KEY_PASSPHRASE';
  }
  const key = opened(pem, passphrase);
  if (!key) {
    return isEncrypted
      ? 'APPLE_PASS_KEY_PASSPHRASE: does not open APPLE_PASS_KEY'
      : 'APPLE_PASS_KEY: is no private key';
  }
  return key.asymmetricKeyType === 'rsa'
    ? key
    : 'APPLE_PASS_KEY: is no RSA key, and Apple issues pass certificates for no other';
}

/** @returns what is wrong with it, if something is */
function pushToken({ APNS_KEY, APNS_KEY_ID }: AppleSettings): AppleToken | string {
  if (APNS_KEY === undefined) {
    return APNS_KEY_ID === undefined ? null : 'APNS_KEY_ID: needs APNS_KEY';
  }
  if (APNS_KEY_ID === undefined) return 'APNS_KEY: needs APNS_KEY_ID, which its page shows';
  const key = opened(APNS_KEY);
  return key?.asymmetricKeyDetails?.namedCurve === 'prime256v1'
    ? { key, id: APNS_KEY_ID }
    : 'APNS_KEY: is no key of the push service (.p8)';
}

type AppleToken = AppleCredentials['push']['token'];

function opened(pem: string, passphrase?: string): KeyObject | undefined {
  try {
    return createPrivateKey({ key: pem, ...(passphrase !== undefined && { passphrase }) });
  } catch {
    // OpenSSL's words say nothing that a person could act on.
    return undefined;
  }
}

function issuerOf({ issuer }: X509Certificate): string {
  const { CN = 'somebody unnamed', OU } = namesIn(issuer);
  return OU === undefined ? CN : `${CN} (${OU})`;
}

/** Of a distinguished name as Node.js writes it: one a line. */
function namesIn(name: string): Record<string, string> {
  return Object.fromEntries(
    name.split('\n').map((line) => {
      const [type = '', ...value] = line.split('=');
      return [type, value.join('=')];
    }),
  );
}
