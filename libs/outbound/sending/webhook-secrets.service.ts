import { Injectable, Logger } from '@nestjs/common';
import { randomBytes } from 'node:crypto';
import { getErrorMessage } from '#platform/kernel/errors.js';
import { ExpiringCache } from '#platform/kernel/expiring-cache.js';
import { type SealedColumn, MasterKeys } from '#platform/database/master-keys.js';
import type { CustomHeaders } from './webhook-headers.js';
import {
  createSigningSecret,
  WEBHOOK_SECRET_BYTES,
  type SignatureKind,
  type SigningSecret,
} from './webhook-signature.js';

const PURPOSE = 'webhook secrets';
const getContext = (subscriptionId: unknown): string =>
  `webhook subscription ${String(subscriptionId)}`;
const getHeadersContext = (subscriptionId: unknown): string =>
  `${getContext(subscriptionId)}, headers`;

const CONTEXTS = {
  secret: getContext,
  previous_secret: getContext,
  headers: getHeadersContext,
};

export const WEBHOOK_SECRET_COLUMNS: SealedColumn[] = Object.entries(CONTEXTS).map(
  ([column, getColumnContext]) => ({
    name: `webhook subscriptions (${column})`,
    table: 'webhook_subscriptions',
    column,
    id: 'id',
    idType: 'bigint',
    purpose: PURPOSE,
    getContext: getColumnContext,
  }),
);

/** A queue is viewed about once a second while it is busy. */
const OPENED = { max: 1_000, ttl: 60_000 };

/** Seals and opens signing secrets and headers. Each is sealed to its subscription. */
@Injectable()
export class WebhookSecrets {
  private readonly log = new Logger('webhook secrets');
  /** Caches opened texts by their context and sealed bytes, which change with every secret and every key. */
  private readonly opened = new ExpiringCache<string, string>(OPENED);

  constructor(private readonly keys: MasterKeys) {}

  generate(kind: SignatureKind): SigningSecret {
    return createSigningSecret(kind, randomBytes(WEBHOOK_SECRET_BYTES));
  }

  seal(subscriptionId: number, secret: string): Buffer {
    return this.keys.seal(PURPOSE, Buffer.from(secret), getContext(subscriptionId));
  }

  /** Opens a secret. @returns null when it cannot be decrypted: only that subscription fails, with `secret_lost` */
  open(subscriptionId: number, sealed: Buffer): string | null {
    return this.openText(subscriptionId, sealed, getContext(subscriptionId));
  }

  /** Seals headers. @returns null when there are none */
  sealHeaders(subscriptionId: number, headers: CustomHeaders): Buffer | null {
    if (Object.keys(headers).length === 0) return null;
    const text = Buffer.from(JSON.stringify(headers));
    return this.keys.seal(PURPOSE, text, getHeadersContext(subscriptionId));
  }

  /** Opens headers. @returns null when they cannot be decrypted: that subscription fails with `headers_lost` */
  openHeaders(subscriptionId: number, sealed: Buffer | null): CustomHeaders | null {
    if (sealed === null) return {};
    const text = this.openText(subscriptionId, sealed, getHeadersContext(subscriptionId));
    return text === null ? null : (JSON.parse(text) as CustomHeaders);
  }

  private openText(subscriptionId: number, sealed: Buffer, context: string): string | null {
    const key = `${context} ${sealed.toString('latin1')}`;
    const cached = this.opened.get(key);
    if (cached !== undefined) return cached;
    try {
      const text = this.keys.open(PURPOSE, sealed, context).toString();
      this.opened.set(key, text);
      return text;
    } catch (error) {
      const about = { subscription_id: subscriptionId };
      this.log.debug(`a secret could not be decrypted: ${getErrorMessage(error)}`, about);
      return null;
    }
  }
}
