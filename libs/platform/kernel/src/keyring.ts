import { deriveKey, open, seal } from './sealing.js';

/** Values sealed before keys had ids do not begin with this mark. */
const MARK = Buffer.from('ink\u0001');
const ID_BYTES = 4;
export const PREFIX_BYTES = MARK.length + ID_BYTES;

/** @property fingerprint identifies the key without revealing anything about it; 32 bytes */
export type MasterKey = { bytes: Buffer; fingerprint: Buffer };

export function masterKeyOf(bytes: Buffer): MasterKey {
  return { bytes, fingerprint: deriveKey(bytes, 'fingerprint') };
}

/** The id of a key in messages and process names. */
export function keyIdOf(fingerprint: Buffer): string {
  return fingerprint.subarray(0, ID_BYTES).toString('hex');
}

/** The prefix of the values that the key has sealed. */
export function prefixOf(fingerprint: Buffer): Buffer {
  return Buffer.concat([MARK, fingerprint.subarray(0, ID_BYTES)]);
}

/** Seals with one master key, and opens with any of those given. */
export class Keyring {
  private readonly derived = new Map<string, Buffer>();

  /**
   * @param sealing one of the keys
   * @param marked whether sealed values begin with the id of their key; the previous version cannot read those
   */
  constructor(
    private readonly keys: readonly MasterKey[],
    private sealing: MasterKey,
    private marked: boolean,
  ) {}

  get sealingKey(): MasterKey {
    return this.sealing;
  }

  sealWith(key: MasterKey, marked: boolean): void {
    this.sealing = key;
    this.marked = marked;
  }

  /** @param purpose a value sealed for one purpose cannot be opened for another, nor with another context */
  seal(purpose: string, plain: Buffer, context: string): Buffer {
    const sealed = seal(this.keyFor(this.sealing, purpose), plain, context);
    return this.marked ? Buffer.concat([prefixOf(this.sealing.fingerprint), sealed]) : sealed;
  }

  /** @throws when none of the keys opens it */
  open(purpose: string, sealed: Buffer, context: string): Buffer {
    const prefix = sealed.subarray(0, PREFIX_BYTES);
    const named = this.keys.find(({ fingerprint }) => prefixOf(fingerprint).equals(prefix));
    if (named) return open(this.keyFor(named, purpose), sealed.subarray(PREFIX_BYTES), context);
    const [first, ...others] = this.keys.map((key) => this.keyFor(key, purpose));
    if (!first) throw new Error('a keyring has a key');
    try {
      return open(first, sealed, context);
    } catch (error) {
      for (const key of others) {
        try {
          return open(key, sealed, context);
        } catch {
          // Not this one either: the first refusal is told.
        }
      }
      throw error;
    }
  }

  private keyFor(key: MasterKey, purpose: string): Buffer {
    const name = `${keyIdOf(key.fingerprint)} ${purpose}`;
    const known = this.derived.get(name);
    if (known) return known;
    const derived = deriveKey(key.bytes, purpose);
    this.derived.set(name, derived);
    return derived;
  }
}
