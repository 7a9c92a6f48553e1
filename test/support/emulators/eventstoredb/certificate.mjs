import { generateKeyPairSync, randomBytes, sign } from 'node:crypto';

const SEQUENCE = 0x30;
const SET = 0x31;
const INTEGER = 0x02;
const BIT_STRING = 0x03;
const OCTET_STRING = 0x04;
const OBJECT_IDENTIFIER = 0x06;
const UTF8_STRING = 0x0c;
const UTC_TIME = 0x17;
const TRUE = Buffer.from([0x01, 0x01, 0xff]);

const ECDSA_WITH_SHA256 = '2a8648ce3d040302';
const COMMON_NAME = '550403';
const BASIC_CONSTRAINTS = '551d13';
const SUBJECT_ALTERNATIVE_NAME = '551d11';
const DAY = 24 * 60 * 60 * 1000;

/** @param {number} tag */
function der(tag, ...parts) {
  const content = Buffer.concat(parts);
  const { length } = content;
  const header = length < 0x80 ? [length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...header]), content]);
}

const identifier = (hex) => der(OBJECT_IDENTIFIER, Buffer.from(hex, 'hex'));

/** @param {Date} date */
const utcTime = (date) =>
  der(UTC_TIME, Buffer.from(`${date.toISOString().slice(2, 19).replaceAll(/[-:T]/g, '')}Z`));

/**
 * A self-signed certificate for `localhost` and 127.0.0.1, made when it is needed, so that no private key is in the
 * repository.
 * @param {Date} until
 */
export function selfSigned(until = new Date(Date.now() + 365 * DAY)) {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const algorithm = der(SEQUENCE, identifier(ECDSA_WITH_SHA256));
  const name = der(
    SEQUENCE,
    der(SET, der(SEQUENCE, identifier(COMMON_NAME), der(UTF8_STRING, Buffer.from('localhost')))),
  );
  const names = der(
    SEQUENCE,
    der(0x82, Buffer.from('localhost')),
    der(0x87, Buffer.from([127, 0, 0, 1])),
  );
  const extensions = der(
    SEQUENCE,
    der(SEQUENCE, identifier(BASIC_CONSTRAINTS), TRUE, der(OCTET_STRING, der(SEQUENCE, TRUE))),
    der(SEQUENCE, identifier(SUBJECT_ALTERNATIVE_NAME), der(OCTET_STRING, names)),
  );
  const content = der(
    SEQUENCE,
    der(0xa0, der(INTEGER, Buffer.from([2]))),
    der(INTEGER, Buffer.from([0x01]), randomBytes(8)),
    algorithm,
    name,
    der(SEQUENCE, utcTime(new Date(until.getTime() - 366 * DAY)), utcTime(until)),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, extensions),
  );
  const signature = sign('sha256', content, privateKey);
  const certificate = der(
    SEQUENCE,
    content,
    algorithm,
    der(BIT_STRING, Buffer.from([0]), signature),
  );
  // Without an empty line at the end, which OpenSSL refuses.
  const base64 = certificate.toString('base64').replaceAll(/(.{64})(?=.)/g, '$1\n');
  return {
    cert: Buffer.from(`-----BEGIN CERTIFICATE-----\n${base64}\n-----END CERTIFICATE-----\n`),
    key: Buffer.from(privateKey.export({ type: 'pkcs8', format: 'pem' })),
  };
}
