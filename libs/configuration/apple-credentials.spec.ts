import { beforeAll, describe, expect, it } from '@jest/globals';
import { createPrivateKey, generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  appleCertificates,
  PASS_TYPE,
  TEAM,
  type AppleCertificates,
} from '../../test/support/emulators/apple/certificates.mjs';
import { readAppleCredentials } from './apple-credentials.js';
import { readConfig } from './config.js';

const DATABASE_URL = 'postgres://u:p@localhost:5432/x';
const folder = mkdtempSync(join(tmpdir(), 'inkpad-apple-'));

describe('readConfig with settings of Apple Wallet', () => {
  let certificates: AppleCertificates;
  let settings: Record<string, string>;

  beforeAll(() => {
    certificates = appleCertificates();
    settings = {
      DATABASE_URL,
      DATA_DIR: folder,
      PUBLIC_URL: 'https://cards.example/',
      APPLE_PASS_CERT: certificates.pass.certificate,
      APPLE_PASS_KEY: certificates.pass.key,
      APPLE_WWDR_CERT: certificates.wwdr,
    };
  });

  const getErrors = (changes: Record<string, string>) => {
    try {
      readConfig({ ...settings, ...changes });
      return 'none';
    } catch (error) {
      return (error as Error).message.split('\n').slice(1).join('\n').trim();
    }
  };

  it('returns null when all are missing', () => {
    expect(readConfig({ DATABASE_URL, DATA_DIR: folder }).apple).toBeNull();
  });

  it('reads team and pass type from the certificate', () => {
    expect(readConfig(settings).apple).toMatchObject({
      passTypeId: PASS_TYPE,
      teamId: TEAM,
      push: { url: 'https://api.push.apple.com', token: null },
    });
  });

  it('reads PEM from a file, and from a value in one line', () => {
    const file = join(folder, 'pass.pem');
    writeFileSync(file, certificates.pass.certificate);
    const { APPLE_PASS_CERT: _, ...others } = settings;
    const config = readConfig({
      ...others,
      APPLE_PASS_CERT_FILE: file,
      APPLE_PASS_KEY: certificates.pass.key.trim().replaceAll('\n', '\\n'),
    });
    expect(config.apple).toMatchObject({ passTypeId: PASS_TYPE });
  });

  it('reads a key with a passphrase, and reports a missing or wrong one', () => {
    const APPLE_PASS_KEY = createPrivateKey(certificates.pass.key)
      .export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'open sesame' })
      .toString();
    const getPassphraseErrors = (APPLE_PASS_KEY_PASSPHRASE: string) =>
      getErrors({ APPLE_PASS_KEY, APPLE_PASS_KEY_PASSPHRASE });
    expect(getPassphraseErrors('open sesame')).toBe('none');
    expect(getPassphraseErrors('')).toBe(
      'APPLE_PASS_KEY: is encrypted: set APPLE_PASS_KEY_PASSPHRASE',
    );
    expect(getPassphraseErrors('other')).toBe(
      'APPLE_PASS_KEY_PASSPHRASE: does not open APPLE_PASS_KEY',
    );
  });

  it('reports settings that do not match', () => {
    const otherCertificates = appleCertificates({ team: 'Z9Z9Z9Z9Z9' });
    expect(getErrors({ APPLE_WWDR_CERT: otherCertificates.root })).toMatch(
      /^APPLE_WWDR_CERT: did not issue the pass certificate. That was Test Worldwide Developer Relations/,
    );
    expect(getErrors({ APPLE_PASS_KEY: otherCertificates.pass.key })).toBe(
      'APPLE_PASS_KEY: is not the key of APPLE_PASS_CERT',
    );
    expect(getErrors({ PUBLIC_URL: 'http://cards.example' })).toBe(
      'APPLE_PASS_CERT: needs a PUBLIC_URL with https://, because phones require it',
    );
    expect(
      getErrors({ APPLE_PASS_CERT: certificates.wwdr, APPLE_WWDR_CERT: certificates.root, APPLE_PASS_KEY: otherCertificates.pass.key }), // prettier-ignore
    ).toMatch(/^APPLE_PASS_CERT: is not a Pass Type ID certificate/);
  });

  it('refuses an intermediate certificate with the right name and another key', () => {
    expect(getErrors({ APPLE_WWDR_CERT: appleCertificates().wwdr })).toMatch(/^APPLE_WWDR_CERT:/);
  });

  it('reports missing and invalid settings', () => {
    expect(getErrors({ APPLE_PASS_KEY: '' })).toMatch(/^APPLE_PASS_KEY: needed for passes/);
    expect(getErrors({ APPLE_PASS_CERT: 'pass.cer' })).toMatch(
      /^APPLE_PASS_CERT: must be a certificate in PEM/,
    );
    expect(getErrors({ APPLE_PASS_KEY: '-----BEGIN PRIVATE KEY-----' })).toBe(
      'APPLE_PASS_KEY: is not a private key',
    );
    const ec = generateKeyPairSync('ec', { namedCurve: 'prime256v1' }).privateKey;
    const p8 = ec.export({ type: 'pkcs8', format: 'pem' }).toString();
    expect(getErrors({ APPLE_PASS_KEY: p8 })).toMatch(/^APPLE_PASS_KEY: is no RSA key/);
    expect(getErrors({ APNS_KEY: p8 })).toMatch(/^APNS_KEY: needs APNS_KEY_ID/);
    expect(getErrors({ APNS_KEY_ID: 'K' })).toBe('APNS_KEY_ID: needs APNS_KEY');
    expect(getErrors({ APNS_KEY: certificates.pass.key, APNS_KEY_ID: 'K' })).toMatch(
      /^APNS_KEY: is not a key/,
    );
    expect(getErrors({ APNS_KEY: p8, APNS_KEY_ID: 'K' })).toBe('none');
  });

  it('accepts an expired certificate, and refuses one that is not valid yet', () => {
    const environment = { ...settings, APNS_URL: 'https://api.push.apple.com' };
    const later = new Date(Date.now() + 400 * 24 * 60 * 60 * 1000);
    const { credentials, errors } = readAppleCredentials(environment, later);
    expect(errors).toEqual([]);
    expect(credentials?.expiresAt.getTime()).toBeLessThan(later.getTime());
    expect(readAppleCredentials(environment, new Date(0)).errors[0]).toMatch(/is not valid before/);
  });
});
