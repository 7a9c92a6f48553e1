import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  hkdfSync,
  randomFillSync,
  type KeyObject,
} from 'node:crypto';

const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** Derives one key per purpose, so that a value sealed for one use cannot be opened by another. */
export function deriveKey(masterKey: Buffer, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', masterKey, 'inkpad', purpose, 32));
}

/**
 * Encrypts with AES-256-GCM and a fresh nonce: nonce, tag, ciphertext in one buffer. `context` is authenticated but
 * not stored: a sealed value moved to another place does not open.
 */
export function seal(key: Buffer, plain: Buffer, context: string): Buffer {
  const sealed = Buffer.allocUnsafe(NONCE_BYTES + TAG_BYTES + plain.length);
  const nonce = randomFillSync(sealed.subarray(0, NONCE_BYTES));
  const cipher = createCipheriv('aes-256-gcm', keyObject(key), nonce);
  cipher.setAAD(Buffer.from(context));
  cipher.update(plain).copy(sealed, NONCE_BYTES + TAG_BYTES);
  // In GCM the last call returns no bytes.
  cipher.final();
  cipher.getAuthTag().copy(sealed, NONCE_BYTES);
  return sealed;
}

/**
 * Decrypts a sealed value.
 * @throws when the key or the context is wrong, or a bit was changed
 */
export function open(key: Buffer, sealed: Buffer, context: string): Buffer {
  const nonce = sealed.subarray(0, NONCE_BYTES);
  const decipher = createDecipheriv('aes-256-gcm', keyObject(key), nonce);
  decipher.setAAD(Buffer.from(context));
  decipher.setAuthTag(sealed.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
  const plain = decipher.update(sealed.subarray(NONCE_BYTES + TAG_BYTES));
  // Checks the tag.
  decipher.final();
  return plain;
}

/** Computes a keyed hash of a value that must be findable but not readable. */
export function fingerprint(key: Buffer, ...parts: (string | number)[]): Buffer {
  return createHmac('sha256', keyObject(key)).update(JSON.stringify(parts)).digest();
}

/** Caches key objects: Node.js 24 takes 10 µs to find out that bytes are no key object, and 2 to create one. */
const keyObjects = new WeakMap<Buffer, KeyObject>();

function keyObject(key: Buffer): KeyObject {
  const cached = keyObjects.get(key);
  if (cached) return cached;
  const created = createSecretKey(key);
  keyObjects.set(key, created);
  return created;
}
