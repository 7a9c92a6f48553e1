import { readFileSync } from 'node:fs';
import { describeFileError } from '#kernel/file-errors.js';
import { trimText } from '#kernel/text.js';

/**
 * Settings that hold a secret, or a certificate in several lines. Each can be read from a file instead, named by the same setting with `_FILE` at its end.
 */
export const SECRET_SETTINGS = [
  'DATABASE_URL',
  'DATABASE_MIGRATION_URL',
  'DATABASE_READ_URL',
  'EVENT_STORE_URL',
  'EVENT_STORE_ADMIN_URL',
  'MASTER_KEY',
  'MASTER_KEY_PREVIOUS',
  'CHECKPOINT_KEY',
  'GOOGLE_WALLET_KEY',
  'GEOCODER_KEY',
  'REDIS_URL',
  'SMTP_URL',
  'OUTBOUND_PROXY_URL',
  'SMS_TOKEN',
  'APPLE_PASS_CERT',
  'APPLE_PASS_KEY',
  'APPLE_PASS_KEY_PASSPHRASE',
  'APPLE_WWDR_CERT',
  'APNS_CA_CERT',
  'APNS_KEY',
  'OIDC_CLIENT_SECRET',
] as const;

type Environment = Record<string, string | undefined>;

/** Fills in the contents of those files, and reports the ones that cannot be read. */
export function readSecretFiles(environment: Environment): {
  settings: Environment;
  errors: string[];
} {
  const settings = { ...environment };
  const errors: string[] = [];
  for (const name of SECRET_SETTINGS) {
    const file = environment[`${name}_FILE`];
    if (file === undefined) continue;
    if (environment[name] !== undefined) {
      errors.push(`${name}_FILE: ${name} is set as well; set one of the two`);
      continue;
    }
    try {
      const text = trimText(readFileSync(file, 'utf8'));
      if (text === '') errors.push(`${name}_FILE: ${file} is empty`);
      else settings[name] = text;
    } catch (error) {
      errors.push(
        `${name}_FILE: ${file} cannot be read: ${describeFileError(error) ?? String(error)}`,
      );
    }
  }
  return { settings, errors };
}
