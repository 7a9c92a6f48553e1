import type { IncomingHttpHeaders } from 'node:http';
import {
  verifyWebhook,
  WebhookVerificationError,
} from '../../../clients/typescript/src/webhooks.js';

/**
 * Finds what is wrong with the signature of a webhook, as a receiver would.
 * @param key a secret, or a public key of scheme v1a
 */
export function findSignatureError(
  key: string,
  body: Buffer,
  headers: IncomingHttpHeaders,
): string | undefined {
  try {
    verifyWebhook({ body, headers }, key);
    return undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return 'NOT JSON';
    if (error instanceof WebhookVerificationError) return `INVALID SIGNATURE: ${error.message}`;
    throw error;
  }
}
