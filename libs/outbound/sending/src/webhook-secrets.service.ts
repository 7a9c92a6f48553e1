import { Injectable, Logger } from '@nestjs/common';
import { randomBytes } from 'node:crypto';
import { Config } from '#kernel/config.js';
import { messageOf } from '#kernel/errors.js';
import { deriveKey } from '#kernel/sealing.js';
import { openSecret, SECRET_BYTES, SECRETS, sealSecret, signingSecret } from './webhook-secret.js';

export const SECRET_LOST = 'The signing secret cannot be decrypted: rotate it';

/** Signing secrets, which are stored sealed to their subscription. */
@Injectable()
export class WebhookSecrets {
  private readonly log = new Logger('webhook secrets');
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

  /** @returns null where it does not open: that is one subscription's trouble, and `SECRET_LOST` says it there */
  open(subscriptionId: number, sealed: Buffer): string | null {
    try {
      return openSecret(this.key, subscriptionId, sealed);
    } catch (error) {
      const about = { subscription_id: subscriptionId };
      this.log.debug(`a secret cannot be decrypted: ${messageOf(error)}`, about);
      return null;
    }
  }
}
