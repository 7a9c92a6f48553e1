import { createPublicKey, verify, type KeyObject } from 'node:crypto';

const PROTOCOL = 'ECv2SigningOnly';
/** Google's documentation names both; the id is part of what is signed. */
const SENDERS = ['GooglePayPasses', 'GoogleWalletPasses'];
const LONGEST_NONCE = 200;

/** What Google tells of a customer's phone. */
export type Callback = {
  objectId: string;
  eventType: 'save' | 'del';
  nonce: string;
  expiresAt: Date;
};

export type RootKey = { key: KeyObject; expiresAt: Date };

type Envelope = {
  signature: string;
  intermediateSigningKey: { signedKey: string; signatures: string[] };
  signedMessage: string;
};

/**
 * Google's root keys sign an intermediate key, which signs the message for one issuer. Everything in the envelope is
 * untrusted until both signatures have been checked.
 * @param issuerId whom the message must be for
 * @returns undefined for everything that Google has not signed for this issuer, and for what has expired
 */
export function verifiedCallback(
  body: unknown,
  roots: RootKey[],
  issuerId: string,
  now: Date,
): Callback | undefined {
  const envelope = envelopeOf(body);
  if (!envelope) return undefined;
  const { signature, signedMessage, intermediateSigningKey } = envelope;
  const { signedKey, signatures } = intermediateSigningKey;
  const valid = roots.filter(({ expiresAt }) => expiresAt > now);
  const sender = SENDERS.find((id) =>
    signatures.some((one) =>
      valid.some(({ key }) => isSigned(key, [id, PROTOCOL, signedKey], one)),
    ),
  );
  const intermediate = sender === undefined ? undefined : intermediateOf(signedKey, now);
  if (sender === undefined || !intermediate) return undefined;
  if (!isSigned(intermediate, [sender, issuerId, PROTOCOL, signedMessage], signature)) {
    return undefined;
  }
  const callback = callbackOf(signedMessage);
  return callback && callback.expiresAt > now ? callback : undefined;
}

/** @param document what Google publishes; unknown protocols and keys that cannot be read are left out */
export function rootKeysOf(document: unknown): RootKey[] {
  const { keys } = membersOf(document);
  return (Array.isArray(keys) ? keys : []).flatMap((one: unknown) => {
    const { protocolVersion, keyValue, keyExpiration } = membersOf(one);
    if (protocolVersion !== PROTOCOL) return [];
    const key = publicKeyOf(keyValue);
    const expiresAt = momentOf(keyExpiration);
    return key && expiresAt ? [{ key, expiresAt }] : [];
  });
}

function envelopeOf(body: unknown): Envelope | undefined {
  const { signature, signedMessage, intermediateSigningKey, protocolVersion } = membersOf(body);
  const { signedKey, signatures } = membersOf(intermediateSigningKey);
  if (protocolVersion !== PROTOCOL || !isText(signature) || !isText(signedMessage))
    return undefined;
  if (!isText(signedKey) || !Array.isArray(signatures) || !signatures.every(isText)) {
    return undefined;
  }
  // More than one while Google changes its root key; each costs as many checks as there are root keys.
  return {
    signature,
    signedMessage,
    intermediateSigningKey: { signedKey, signatures: signatures.slice(0, 4) },
  };
}

function intermediateOf(signedKey: string, now: Date): KeyObject | undefined {
  const { keyValue, keyExpiration } = membersOf(jsonOf(signedKey));
  const expiresAt = momentOf(keyExpiration);
  return expiresAt && expiresAt > now ? publicKeyOf(keyValue) : undefined;
}

function callbackOf(signedMessage: string): Callback | undefined {
  const { objectId, eventType, nonce, expTimeMillis } = membersOf(jsonOf(signedMessage));
  const expiresAt = momentOf(expTimeMillis);
  if (!isText(objectId) || !isText(nonce) || nonce.length > LONGEST_NONCE) return undefined;
  if ((eventType !== 'save' && eventType !== 'del') || !expiresAt) return undefined;
  return { objectId, eventType, nonce, expiresAt };
}

/** Over the parts, each preceded by its length in four bytes. */
function isSigned(key: KeyObject, parts: string[], signature: string): boolean {
  const bytes = parts.flatMap((part) => {
    const length = Buffer.alloc(4);
    length.writeUInt32LE(Buffer.byteLength(part));
    return [length, Buffer.from(part)];
  });
  return verify('sha256', Buffer.concat(bytes), key, Buffer.from(signature, 'base64'));
}

function publicKeyOf(value: unknown): KeyObject | undefined {
  if (!isText(value)) return undefined;
  try {
    const bytes = Buffer.from(value, 'base64');
    const key = createPublicKey({ key: bytes, type: 'spki', format: 'der' });
    return key.asymmetricKeyDetails?.namedCurve === 'prime256v1' ? key : undefined;
  } catch {
    // Bytes that are no key: whoever sent them has signed nothing.
    return undefined;
  }
}

/** @param milliseconds since 1970, as a number or in digits */
function momentOf(milliseconds: unknown): Date | undefined {
  const number = isText(milliseconds) ? Number(milliseconds) : milliseconds;
  if (typeof number !== 'number') return undefined;
  const moment = new Date(number);
  return Number.isNaN(moment.getTime()) ? undefined : moment;
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function membersOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}
