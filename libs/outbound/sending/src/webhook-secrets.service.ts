import { Injectable, Logger } from '@nestjs/common';
import { randomBytes } from 'node:crypto';
import { getErrorMessage } from '#kernel/errors.js';
import type { SealedColumn } from '#database/sealed-column.js';
import { MasterKeys } from '#database/master-keys.js';
import { WEBHOOK_SECRET_BYTES, formatSigningSecret } from './webhook-signature.js';

export const SECRET_LOST = 'The signing secret cannot be decrypted: rotate it';

const PURPOSE = 'webhook secrets';
const getContext = (subscriptionId: unknown): string =>
  `webhook subscription ${String(subscriptionId)}`;

export const WEBHOOK_SECRET_COLUMNS: SealedColumn[] = ['secret', 'previous_secret'].map(
  (column) => ({
    name: `webhook subscriptions (${column})`,
    table: 'webhook_subscriptions',
    column,
    id: 'id',
    idType: 'bigint',
    purpose: PURPOSE,
    getContext,
  }),
);

/** Seals and opens signing secrets. Each is sealed to its subscription. */
@Injectable()
export class WebhookSecrets {
  private readonly log = new Logger('webhook secrets');

  constructor(private readonly keys: MasterKeys) {}

  generate(): string {
    return formatSigningSecret(randomBytes(WEBHOOK_SECRET_BYTES));
  }

  seal(subscriptionId: number, secret: string): Buffer {
    return this.keys.seal(PURPOSE, Buffer.from(secret), getContext(subscriptionId));
  }

  /** Opens a secret. @returns null when it cannot be decrypted: only that subscription fails, with `SECRET_LOST` */
  open(subscriptionId: number, sealed: Buffer): string | null {
    try {
      return this.keys.open(PURPOSE, sealed, getContext(subscriptionId)).toString();
    } catch (error) {
      const about = { subscription_id: subscriptionId };
      this.log.debug(`a secret could not be decrypted: ${getErrorMessage(error)}`, about);
      return null;
    }
  }
}
