import { Injectable } from '@nestjs/common';
import { randomBytes } from 'node:crypto';
import { Config } from '#kernel/config.js';
import { deriveKey } from '#kernel/sealing.js';
import { openSecret, SECRET_BYTES, SECRETS, sealSecret, signingSecret } from './webhook-secret.js';

/** Signing secrets, which are stored sealed to their subscription. */
@Injectable()
export class WebhookSecrets {
  private readonly key: Buffer;

  constructor(config: Config) {
    this.key = deriveKey(config.masterKey, SECRETS);
  }

  generate(): string {
    return signingSecret(randomBytes(SECRET_BYTES));
  }

  seal(subscriptionId: number, secret: string): Buffer {
    return sealSecret(this.key, subscriptionId, secret);
  }

  open(subscriptionId: number, sealed: Buffer): string {
    return openSecret(this.key, subscriptionId, sealed);
  }
}
