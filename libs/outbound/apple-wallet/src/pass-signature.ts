import { createHash, sign, X509Certificate, type KeyObject } from 'node:crypto';
import { promisify } from 'node:util';
import { der, issuerAndSerial, objectId, setOf, TAG, utcTime } from './der.js';

const signAsync = promisify<string, Buffer, KeyObject, Buffer>(sign);

const DATA = objectId('1.2.840.113549.1.7.1');
const SIGNED_DATA = objectId('1.2.840.113549.1.7.2');
const CONTENT_TYPE = objectId('1.2.840.113549.1.9.3');
const MESSAGE_DIGEST = objectId('1.2.840.113549.1.9.4');
const SIGNING_TIME = objectId('1.2.840.113549.1.9.5');
const NULL = der(TAG.null);
const SHA_256 = der(TAG.sequence, objectId('2.16.840.1.101.3.4.2.1'), NULL);
const RSA = der(TAG.sequence, objectId('1.2.840.113549.1.1.1'), NULL);
const VERSION = der(TAG.integer, Buffer.from([1]));

export type PassSigner = (content: Buffer, at: Date) => Promise<Buffer>;

/**
 * Signs as phones want it: a detached CMS SignedData (RFC 5652) with both certificates in it. All that does not depend
 * on the content is encoded once, and the RSA signature is made off the main thread.
 */
export function passSigner(pem: { certificate: string; key: KeyObject; wwdr: string }): PassSigner {
  const { raw } = new X509Certificate(pem.certificate);
  const certificates = der(TAG.first, new X509Certificate(pem.wwdr).raw, raw);
  const signer = issuerAndSerial(raw);
  const contentType = attribute(CONTENT_TYPE, DATA);
  return async (content, at) => {
    const digest = createHash('sha256').update(content).digest();
    const attributes = setOf(
      contentType,
      attribute(SIGNING_TIME, utcTime(at)),
      attribute(MESSAGE_DIGEST, der(TAG.octetString, digest)),
    );
    const signature = await signAsync('sha256', attributes, pem.key);
    // What is signed is the SET; what is stored carries the tag [0] in its place (RFC 5652, 5.4).
    const stored = Buffer.from(attributes);
    stored[0] = TAG.first;
    const info = der(
      TAG.sequence,
      VERSION,
      signer,
      SHA_256,
      stored,
      RSA,
      der(TAG.octetString, signature),
    );
    const signed = der(
      TAG.sequence,
      VERSION,
      der(TAG.set, SHA_256),
      der(TAG.sequence, DATA),
      certificates,
      der(TAG.set, info),
    );
    return der(TAG.sequence, SIGNED_DATA, der(TAG.first, signed));
  };
}

function attribute(type: Buffer, value: Buffer): Buffer {
  return der(TAG.sequence, type, der(TAG.set, value));
}
