import { Injectable } from '@nestjs/common';
import { deriveKey, fingerprint } from '#platform/kernel/sealing.js';
import { MasterKeys } from '#platform/database/master-keys.js';
import { createKeyPair, type KeyPair } from './web-push-message.js';

/**
 * Derives the VAPID key of this service from a data key, to which every subscription is bound. The data key is created
 * at the first start and sealed with the master key, so it survives a rotation of the master key.
 */
@Injectable()
export class VapidKeys {
  private cachedPair: KeyPair | undefined;

  constructor(private readonly keys: MasterKeys) {}

  get pair(): KeyPair {
    return (this.cachedPair ??= deriveKeyPair(this.keys.getDataKey('web push')));
  }

  /** The public key in base64url, as browsers expect it. */
  get publicKey(): string {
    return this.pair.publicKey.toString('base64url');
  }

  /** Computes the keyed hash by which a browser's subscription is found again. */
  computeFingerprint(endpoint: string): Buffer {
    return fingerprint(deriveKey(this.keys.getDataKey('web push'), 'endpoints'), endpoint);
  }
}

/** Derives a key pair. One in four billion 32-byte values is not a private key of P-256; then it tries the next. */
function deriveKeyPair(seed: Buffer): KeyPair {
  for (let i = 0; i < 10; i++) {
    try {
      return createKeyPair(deriveKey(seed, `vapid ${i}`));
    } catch {
      continue;
    }
  }
  throw new Error('no VAPID key follows from the data key');
}
