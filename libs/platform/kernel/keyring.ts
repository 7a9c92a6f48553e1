import { deriveKey, open, seal } from './sealing.js';

/** Prefix of every sealed value, followed by the id of its key. */
const MARK = Buffer.from('ink\u0001');
const ID_BYTES = 4;
export const PREFIX_BYTES = MARK.length + ID_BYTES;

/** @property fingerprint identifies the key without revealing anything about it; 32 bytes */
export type MasterKey = { bytes: Buffer; fingerprint: Buffer };

export function createMasterKey(bytes: Buffer): MasterKey {
  return { bytes, fingerprint: deriveKey(bytes, 'fingerprint') };
}

/** Returns the id of a key, for messages and process names. */
export function getKeyId(fingerprint: Buffer): string {
  return fingerprint.subarray(0, ID_BYTES).toString('hex');
}

/** Returns the prefix of values that the key has sealed. */
export function getKeyPrefix(fingerprint: Buffer): Buffer {
  return Buffer.concat([MARK, fingerprint.subarray(0, ID_BYTES)]);
}

/** Seals with one master key, and opens with any of several. */
export class Keyring {
  private readonly derived = new Map<string, Buffer>();

  /** @param sealing one of the keys */
  constructor(
    private readonly keys: readonly MasterKey[],
    private sealing: MasterKey,
  ) {}

  sealWith(key: MasterKey): void {
    this.sealing = key;
  }

  /** @param purpose a value sealed for one purpose cannot be opened for another, nor with another context */
  seal(purpose: string, plain: Buffer, context: string): Buffer {
    const sealed = seal(this.deriveKeyFor(this.sealing, purpose), plain, context);
    return Buffer.concat([getKeyPrefix(this.sealing.fingerprint), sealed]);
  }

  /** @throws when the key that sealed the value is missing, or does not open it */
  open(purpose: string, sealed: Buffer, context: string): Buffer {
    const prefix = sealed.subarray(0, PREFIX_BYTES);
    const key = this.keys.find(({ fingerprint }) => getKeyPrefix(fingerprint).equals(prefix));
    if (!key) throw new Error('the value was sealed with another master key');
    return open(this.deriveKeyFor(key, purpose), sealed.subarray(PREFIX_BYTES), context);
  }

  private deriveKeyFor(key: MasterKey, purpose: string): Buffer {
    const name = `${getKeyId(key.fingerprint)} ${purpose}`;
    const cached = this.derived.get(name);
    if (cached) return cached;
    const derived = deriveKey(key.bytes, purpose);
    this.derived.set(name, derived);
    return derived;
  }
}
