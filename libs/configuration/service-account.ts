import type { KeyObject } from 'node:crypto';
import { parseAbsoluteUrl } from '#platform/kernel/absolute-url.js';
import { Invalid } from '#platform/kernel/setting-decorators.js';
import { parsePrivateKey } from './setting-decorators.js';

/** The key of a Google service account. */
export type ServiceAccount = {
  email: string;
  keyId: string;
  privateKey: KeyObject;
  /** URL that exchanges an assertion for an access token. */
  tokenUrl: string;
};

const MIN_KEY_BITS = 2048;

/** Parses the JSON file that the Google Cloud console creates. What is invalid is named without any of its content. */
export function parseServiceAccount(text: string): ServiceAccount | Invalid {
  const json = parseJsonObject(text);
  if (!json) {
    return new Invalid(
      'must be the JSON of a service account key, as the Google Cloud console makes it',
    );
  }
  const {
    type,
    client_email: email,
    private_key_id: keyId,
    private_key: pem,
    token_uri: tokenUri,
  } = json;
  if (type !== 'service_account')
    return new Invalid('is not the key of a service account ("type" says so)');
  if (typeof email !== 'string' || !email.includes('@')) return new Invalid('lacks "client_email"');
  if (typeof keyId !== 'string' || keyId === '') return new Invalid('lacks "private_key_id"');
  const tokenUrl = typeof tokenUri === 'string' ? parseAbsoluteUrl(tokenUri) : undefined;
  if (!tokenUrl || !/^https?:$/.test(tokenUrl.protocol) || tokenUrl.hostname.endsWith('.')) {
    return new Invalid('lacks "token_uri", or it is no URL');
  }
  const privateKey = typeof pem === 'string' ? parsePrivateKey(pem) : undefined;
  if (!privateKey) return new Invalid('has no "private_key" that can be read');
  const bits = privateKey.asymmetricKeyDetails?.modulusLength ?? 0;
  if (privateKey.asymmetricKeyType !== 'rsa' || bits < MIN_KEY_BITS) {
    return new Invalid(`has a "private_key" that is not RSA with at least ${MIN_KEY_BITS} bits`);
  }
  return { email, keyId, privateKey, tokenUrl: tokenUrl.href };
}

function parseJsonObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
    return value as Record<string, unknown>;
  } catch {
    return undefined;
  }
}
