import { createPublicKey, verify, type KeyObject } from 'node:crypto';

const PROTOCOL = 'ECv2SigningOnly';
/** Google's documentation names both. The sender is part of the signed bytes. */
const SENDERS = ['GooglePayPasses', 'GoogleWalletPasses'];
const MAX_NONCE_LENGTH = 200;

/** A report of Google that a customer has saved or deleted a pass. */
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
 * Verifies a callback. Google's root keys sign an intermediate key, which signs the message for one issuer. Everything
 * in the envelope is untrusted until both signatures are verified.
 * @param issuerId the recipient that the message must name
 * @returns undefined unless Google has signed it for this issuer and it has not expired
 */
export function verifyCallback(
  body: unknown,
  roots: RootKey[],
  issuerId: string,
  now: Date,
): Callback | undefined {
  const envelope = parseEnvelope(body);
  if (!envelope) return undefined;
  const { signature, signedMessage, intermediateSigningKey } = envelope;
  const { signedKey, signatures } = intermediateSigningKey;
  const validRoots = roots.filter(({ expiresAt }) => expiresAt > now);
  const sender = SENDERS.find((id) =>
    signatures.some((candidate) =>
      validRoots.some(({ key }) => isSigned(key, [id, PROTOCOL, signedKey], candidate)),
    ),
  );
  const intermediateKey = sender === undefined ? undefined : parseIntermediateKey(signedKey, now);
  if (sender === undefined || !intermediateKey) return undefined;
  if (!isSigned(intermediateKey, [sender, issuerId, PROTOCOL, signedMessage], signature)) {
    return undefined;
  }
  const callback = parseCallback(signedMessage);
  return callback && callback.expiresAt > now ? callback : undefined;
}

/** Parses the document that Google publishes. Skips unknown protocols and keys that cannot be parsed. */
export function parseRootKeys(document: unknown): RootKey[] {
  const { keys } = toObject(document);
  return (Array.isArray(keys) ? keys : []).flatMap((entry: unknown) => {
    const { protocolVersion, keyValue, keyExpiration } = toObject(entry);
    if (protocolVersion !== PROTOCOL) return [];
    const key = parsePublicKey(keyValue);
    const expiresAt = parseTime(keyExpiration);
    return key && expiresAt ? [{ key, expiresAt }] : [];
  });
}

function parseEnvelope(body: unknown): Envelope | undefined {
  const { signature, signedMessage, intermediateSigningKey, protocolVersion } = toObject(body);
  const { signedKey, signatures } = toObject(intermediateSigningKey);
  if (
    protocolVersion !== PROTOCOL ||
    !isNonEmptyString(signature) ||
    !isNonEmptyString(signedMessage)
  )
    return undefined;
  if (
    !isNonEmptyString(signedKey) ||
    !Array.isArray(signatures) ||
    !signatures.every(isNonEmptyString)
  ) {
    return undefined;
  }
  // There are several while Google rotates its root key; each costs one verification for every root key.
  return {
    signature,
    signedMessage,
    intermediateSigningKey: { signedKey, signatures: signatures.slice(0, 4) },
  };
}

function parseIntermediateKey(signedKey: string, now: Date): KeyObject | undefined {
  const { keyValue, keyExpiration } = toObject(parseJson(signedKey));
  const expiresAt = parseTime(keyExpiration);
  return expiresAt && expiresAt > now ? parsePublicKey(keyValue) : undefined;
}

function parseCallback(signedMessage: string): Callback | undefined {
  const { objectId, eventType, nonce, expTimeMillis } = toObject(parseJson(signedMessage));
  const expiresAt = parseTime(expTimeMillis);
  if (!isNonEmptyString(objectId) || !isNonEmptyString(nonce) || nonce.length > MAX_NONCE_LENGTH)
    return undefined;
  if ((eventType !== 'save' && eventType !== 'del') || !expiresAt) return undefined;
  return { objectId, eventType, nonce, expiresAt };
}

/** Verifies a signature over the parts, each preceded by its length in four bytes. */
function isSigned(key: KeyObject, parts: string[], signature: string): boolean {
  const bytes = parts.flatMap((part) => {
    const length = Buffer.alloc(4);
    length.writeUInt32LE(Buffer.byteLength(part));
    return [length, Buffer.from(part)];
  });
  return verify('sha256', Buffer.concat(bytes), key, Buffer.from(signature, 'base64'));
}

function parsePublicKey(value: unknown): KeyObject | undefined {
  if (!isNonEmptyString(value)) return undefined;
  try {
    const bytes = Buffer.from(value, 'base64');
    const key = createPublicKey({ key: bytes, type: 'spki', format: 'der' });
    return key.asymmetricKeyDetails?.namedCurve === 'prime256v1' ? key : undefined;
  } catch {
    // The bytes are not a key, so nothing can be signed with it.
    return undefined;
  }
}

/** Parses a time. @param milliseconds since 1970, as a number or in digits */
function parseTime(milliseconds: unknown): Date | undefined {
  const number = isNonEmptyString(milliseconds) ? Number(milliseconds) : milliseconds;
  if (typeof number !== 'number') return undefined;
  const time = new Date(number);
  return Number.isNaN(time.getTime()) ? undefined : time;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function toObject(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

function isNonEmptyString(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}
