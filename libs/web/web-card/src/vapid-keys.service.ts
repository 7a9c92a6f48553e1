import { Injectable } from '@nestjs/common';
import { deriveKey, fingerprint } from '#kernel/sealing.js';
import { MasterKeys } from '#database/master-keys.js';
import { createKeyPair, type KeyPair } from './web-push-message.js';

/**
 * The key by which push services and browsers know this service. It follows from a data key: made at the first start,
 * sealed with the master key, and the same after that one was changed. Every subscription is bound to it.
 */
@Injectable()
export class VapidKeys {
  private cachedPair: KeyPair | undefined;

  constructor(private readonly keys: MasterKeys) {}

  get pair(): KeyPair {
    return (this.cachedPair ??= deriveKeyPair(this.keys.dataKey('web push')));
  }

  /** Base64url, as browsers take it. */
  get publicKey(): string {
    return this.pair.publicKey.toString('base64url');
  }

  /** By which the subscription of a browser is found again. */
  fingerprintOf(endpoint: string): Buffer {
    return fingerprint(deriveKey(this.keys.dataKey('web push'), 'endpoints'), endpoint);
  }
}

/** One in four billion 32-byte values is no private key of P-256; then the next is taken. */
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
