import { createHash, sign, X509Certificate, type KeyObject } from 'node:crypto';
import { promisify } from 'node:util';
import {
  encodeDer,
  extractIssuerAndSerial,
  encodeObjectId,
  encodeSet,
  TAG,
  encodeUtcTime,
} from './der.js';

const signAsync = promisify<string, Buffer, KeyObject, Buffer>(sign);

const DATA = encodeObjectId('1.2.840.113549.1.7.1');
const SIGNED_DATA = encodeObjectId('1.2.840.113549.1.7.2');
const CONTENT_TYPE = encodeObjectId('1.2.840.113549.1.9.3');
const MESSAGE_DIGEST = encodeObjectId('1.2.840.113549.1.9.4');
const SIGNING_TIME = encodeObjectId('1.2.840.113549.1.9.5');
const NULL = encodeDer(TAG.null);
const SHA_256 = encodeDer(TAG.sequence, encodeObjectId('2.16.840.1.101.3.4.2.1'), NULL);
const RSA = encodeDer(TAG.sequence, encodeObjectId('1.2.840.113549.1.1.1'), NULL);
const VERSION = encodeDer(TAG.integer, Buffer.from([1]));

export type PassSigner = (content: Buffer, signedAt: Date) => Promise<Buffer>;

/**
 * Creates a signer that phones accept: a detached CMS SignedData (RFC 5652) with both certificates in it. Everything
 * that does not depend on the content is encoded once, and the RSA signature is computed off the main thread.
 */
export function createPassSigner(pem: {
  certificate: string;
  key: KeyObject;
  wwdr: string;
}): PassSigner {
  const { raw } = new X509Certificate(pem.certificate);
  const certificates = encodeDer(TAG.first, new X509Certificate(pem.wwdr).raw, raw);
  const signer = extractIssuerAndSerial(raw);
  const contentType = encodeAttribute(CONTENT_TYPE, DATA);
  return async (content, at) => {
    const digest = createHash('sha256').update(content).digest();
    const attributes = encodeSet(
      contentType,
      encodeAttribute(SIGNING_TIME, encodeUtcTime(at)),
      encodeAttribute(MESSAGE_DIGEST, encodeDer(TAG.octetString, digest)),
    );
    const signature = await signAsync('sha256', attributes, pem.key);
    // The signature covers the attributes as a SET; they are stored with the tag [0] instead (RFC 5652, 5.4).
    const taggedAttributes = Buffer.from(attributes);
    taggedAttributes[0] = TAG.first;
    const signerInfo = encodeDer(
      TAG.sequence,
      VERSION,
      signer,
      SHA_256,
      taggedAttributes,
      RSA,
      encodeDer(TAG.octetString, signature),
    );
    const signedData = encodeDer(
      TAG.sequence,
      VERSION,
      encodeDer(TAG.set, SHA_256),
      encodeDer(TAG.sequence, DATA),
      certificates,
      encodeDer(TAG.set, signerInfo),
    );
    return encodeDer(TAG.sequence, SIGNED_DATA, encodeDer(TAG.first, signedData));
  };
}

function encodeAttribute(type: Buffer, value: Buffer): Buffer {
  return encodeDer(TAG.sequence, type, encodeDer(TAG.set, value));
}
