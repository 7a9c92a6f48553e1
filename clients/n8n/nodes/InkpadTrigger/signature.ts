import { createHmac, timingSafeEqual } from 'node:crypto';

export type SignedRequest = {
  headers: Record<string, unknown>;
  /** The bytes as they came: the signature is over them. */
  rawBody: Uint8Array;
};

const TOLERANCE_SECONDS = 300;

/**
 * Verifies a signature by the Standard Webhooks specification, whose timestamp may be five minutes off.
 * @param secret the subscription's, with its `whsec_`
 * @returns whether it was signed with this secret
 */
export function isSigned(request: SignedRequest, secret: string, nowSeconds: number): boolean {
  const { 'webhook-id': id, 'webhook-timestamp': timestamp } = request.headers;
  const signatures = request.headers['webhook-signature'];
  if (typeof id !== 'string' || typeof timestamp !== 'string' || typeof signatures !== 'string') {
    return false;
  }
  if (!/^\d{1,12}$/.test(timestamp)) return false;
  if (Math.abs(nowSeconds - Number(timestamp)) > TOLERANCE_SECONDS) return false;
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  if (key.length === 0) return false;
  const expected = createHmac('sha256', key)
    .update(`${id}.${timestamp}.`)
    .update(request.rawBody)
    .digest();
  return signatures.split(' ').some((signature) => {
    const [version, encoded = ''] = signature.split(',');
    const actual = Buffer.from(encoded, 'base64');
    return (
      version === 'v1' && actual.length === expected.length && timingSafeEqual(actual, expected)
    );
  });
}
