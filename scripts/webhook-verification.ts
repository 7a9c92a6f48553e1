import { createPublicKey, verify } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { Webhook, WebhookVerificationError } from 'standardwebhooks';

const PUBLIC_KEY_PREFIX = 'whpk_';
const TOLERANCE_SECONDS = 5 * 60;

/**
 * Finds what is wrong with the signature of a webhook, as a receiver would.
 * @param key a secret, or a public key of scheme v1a, which the library does not know
 */
export function findSignatureError(
  key: string,
  body: Buffer,
  headers: IncomingHttpHeaders,
): string | undefined {
  try {
    if (!key.startsWith(PUBLIC_KEY_PREFIX)) {
      new Webhook(key).verify(body, headers as Record<string, string>);
      return undefined;
    }
    const error = findAsymmetricError(key, body, headers);
    if (error !== undefined) return `INVALID SIGNATURE: ${error}`;
    JSON.parse(body.toString());
    return undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return 'NOT JSON';
    if (error instanceof WebhookVerificationError) return `INVALID SIGNATURE: ${error.message}`;
    throw error;
  }
}

function findAsymmetricError(
  publicKey: string,
  body: Buffer,
  headers: IncomingHttpHeaders,
): string | undefined {
  const [id, timestamp, signatures] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map(
    (name) => String(headers[name] ?? ''),
  ) as [string, string, string];
  if (!(Math.abs(Date.now() / 1000 - Number(timestamp || NaN)) <= TOLERANCE_SECONDS)) {
    return 'webhook-timestamp is more than five minutes off';
  }
  const x = Buffer.from(publicKey.slice(PUBLIC_KEY_PREFIX.length), 'base64').toString('base64url');
  const key = createPublicKey({ format: 'jwk', key: { kty: 'OKP', crv: 'Ed25519', x } });
  const signed = Buffer.concat([Buffer.from(`${id}.${timestamp}.`), body]);
  const isSigned = signatures.split(' ').some((one) => {
    const [version, signature = ''] = one.split(',');
    return version === 'v1a' && verify(null, signed, key, Buffer.from(signature, 'base64'));
  });
  return isSigned ? undefined : 'No matching signature found';
}
