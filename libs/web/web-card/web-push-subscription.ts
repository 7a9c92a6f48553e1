import { createECDH } from 'node:crypto';
import { parseAbsoluteUrl } from '#platform/kernel/absolute-url.js';
import { InvalidFieldsError } from '#platform/kernel/errors.js';
import { findTargetUrlIssue, type TargetRules } from '#outbound/sending/target-address.js';
import { AUTH_BYTES, generateKeyPair, POINT_BYTES } from './web-push-message.js';
import { ISSUES } from '#translations/issues.js';
import type { FieldIssues } from '#platform/kernel/issues.js';

/** Holds a browser's PushSubscription. Keys are in base64url. */
export type WebPushSubscription = { endpoint: string; p256dh: string; auth: string };

const BASE64URL = /^[\w-]+={0,2}$/;

/**
 * Parses a subscription, which is untrusted input.
 * @throws InvalidFieldsError
 */
export function parseSubscription(body: unknown, rules: TargetRules): WebPushSubscription {
  const { keys, ...subscription } = toRecord(body);
  const { p256dh, auth } = toRecord(keys);
  const errors: FieldIssues = {};
  const endpoint = parseEndpoint(subscription['endpoint'], rules, errors);
  const key = decodeBytes(p256dh);
  if (!key || !isPoint(key)) errors['keys.p256dh'] = [ISSUES.public_key_invalid];
  const secret = decodeBytes(auth);
  if (secret?.length !== AUTH_BYTES)
    errors['keys.auth'] = [ISSUES.secret_length({ bytes: AUTH_BYTES })];
  if (!key || !secret || Object.keys(errors).length > 0) throw new InvalidFieldsError(errors);
  return { endpoint, p256dh: key.toString('base64url'), auth: secret.toString('base64url') };
}

/** Parses the endpoint of the subscription to remove. @throws InvalidFieldsError */
export function parseUnsubscription(body: unknown): string {
  const { endpoint } = toRecord(body);
  if (typeof endpoint === 'string') return parseAbsoluteUrl(endpoint)?.href ?? endpoint;
  throw new InvalidFieldsError({ endpoint: [ISSUES.subscription_address_missing] });
}

function parseEndpoint(value: unknown, rules: TargetRules, errors: FieldIssues): string {
  const text = typeof value === 'string' ? value : '';
  const fault = findTargetUrlIssue(text, rules);
  if (fault === undefined) return new URL(text).href;
  errors['endpoint'] = [fault];
  return text;
}

function toRecord(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

function decodeBytes(value: unknown): Buffer | undefined {
  return typeof value === 'string' && value.length < 200 && BASE64URL.test(value)
    ? Buffer.from(value, 'base64url')
    : undefined;
}

/** Tells whether the bytes are a point of P-256. Encryption relies on it. */
function isPoint(bytes: Buffer): boolean {
  if (bytes.length !== POINT_BYTES) return false;
  const ecdh = createECDH('prime256v1');
  ecdh.setPrivateKey(generateKeyPair().privateKey);
  try {
    ecdh.computeSecret(bytes);
    return true;
  } catch {
    return false;
  }
}
