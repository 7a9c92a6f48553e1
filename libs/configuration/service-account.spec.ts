import { describe, expect, it } from '@jest/globals';
import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ConfigError } from '#platform/kernel/config-error.js';
import { readConfig } from './config.js';

const rsa = (modulusLength: number) =>
  generateKeyPairSync('rsa', {
    modulusLength,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  }).privateKey;
const ec = generateKeyPairSync('ec', {
  namedCurve: 'P-256',
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
}).privateKey;

const KEY = {
  type: 'service_account',
  project_id: 'cards',
  private_key_id: 'k1',
  private_key: rsa(2048),
  client_email: 'inkpad@cards.iam.gserviceaccount.com',
  token_uri: 'https://oauth2.googleapis.com/token',
};
const ISSUER = '3388000000022000000';
const GOOGLE = { GOOGLE_WALLET_ISSUER_ID: ISSUER, GOOGLE_WALLET_KEY: JSON.stringify(KEY) };
const HTTPS = { PUBLIC_URL: 'https://cards.example' };

const createFolder = () => mkdtempSync(join(tmpdir(), 'inkpad-google-'));
const read = (environment: NodeJS.ProcessEnv) =>
  readConfig({
    DATABASE_URL: 'postgres://u:p@localhost/x',
    DATA_DIR: createFolder(),
    ...environment,
  }).google;

describe('readConfig with settings of Google Wallet', () => {
  it('returns null when they are missing', () => {
    expect(read({})).toBeNull();
    expect(read({ PUBLIC_URL: 'http://cards.local' })).toBeNull();
  });

  it('reads an issuer with the key of a service account, as text or from a file', () => {
    const file = join(createFolder(), 'key.json');
    writeFileSync(file, JSON.stringify(KEY, null, 2));
    const expected = {
      issuerId: ISSUER,
      account: { email: KEY.client_email, keyId: 'k1', tokenUrl: KEY.token_uri },
      idSuffix: 'inkpad',
      url: 'https://walletobjects.googleapis.com/walletobjects/v1',
      saveUrl: 'https://pay.google.com/gp/v/save',
      callbackKeysUrl: 'https://pay.google.com/gp/m/issuer/keys',
    };
    expect(read({ ...GOOGLE, ...HTTPS })).toMatchObject(expected);
    expect(
      read({ ...HTTPS, GOOGLE_WALLET_ISSUER_ID: ISSUER, GOOGLE_WALLET_KEY_FILE: file }),
    ).toMatchObject(expected);
  });

  it('reads the URL of an emulator, which has everything at one origin', () => {
    const urls = {
      GOOGLE_WALLET_URL: 'http://127.0.0.1:9/walletobjects/v1/',
    };
    expect(read({ ...GOOGLE, ...urls, GOOGLE_WALLET_ID_SUFFIX: 'staging' })).toMatchObject({
      url: 'http://127.0.0.1:9/walletobjects/v1',
      saveUrl: 'http://127.0.0.1:9/gp/v/save',
      callbackKeysUrl: 'http://127.0.0.1:9/gp/m/issuer/keys',
      idSuffix: 'staging',
    });
  });

  it.each<[string, NodeJS.ProcessEnv, RegExp]>([
    ['an issuer alone', { GOOGLE_WALLET_ISSUER_ID: ISSUER }, /ISSUER_ID: needs GOOGLE_WALLET_KEY/],
    ['a key alone', { GOOGLE_WALLET_KEY: GOOGLE.GOOGLE_WALLET_KEY }, /KEY: needs GOOGLE_WALLET_IS/],
    ['a name as issuer', { ...GOOGLE, GOOGLE_WALLET_ISSUER_ID: 'Corner Café' }, /ISSUER_ID: must/],
    [
      'a key that is not JSON',
      { ...GOOGLE, GOOGLE_WALLET_KEY: '{' },
      /GOOGLE_WALLET_KEY: must be the JSON/,
    ],
    [
      'a public URL without TLS',
      { ...GOOGLE, PUBLIC_URL: 'http://x.example' },
      /PUBLIC_URL: must begin with https/,
    ],
    ['a missing public URL', { ...GOOGLE, PUBLIC_URL: '' }, /PUBLIC_URL: must begin with https/],
    [
      'a host that is not Google in production, to which links would lead',
      { ...GOOGLE, NODE_ENV: 'production', GOOGLE_WALLET_URL: 'https://proxy.example/v1' },
      /GOOGLE_WALLET_URL: must be on googleapis.com .*OUTBOUND_PROXY_URL/,
    ],
    [
      'an underscore in the suffix',
      { ...GOOGLE, GOOGLE_WALLET_ID_SUFFIX: 'a_b' },
      /ID_SUFFIX: must match/,
    ],
  ])('refuses %s', (_, environment, message) => {
    expect(() => read({ ...HTTPS, ...environment })).toThrow(ConfigError);
    expect(() => read({ ...HTTPS, ...environment })).toThrow(message);
  });

  it.each<[string, object, RegExp]>([
    ['of an OAuth client', { type: 'authorized_user' }, /not the key of a service account/],
    ['without an e-mail address', { client_email: undefined }, /lacks "client_email"/],
    ['without an id', { private_key_id: '' }, /lacks "private_key_id"/],
    ['without a valid token URL', { token_uri: 'oauth2' }, /lacks "token_uri"/],
    ['without the key itself', { private_key: 'secret-text' }, /has no "private_key"(?!.*secret)/],
    ['that is short', { private_key: rsa(1024) }, /not RSA with at least 2048 bits/],
    ['that is not RSA', { private_key: ec }, /not RSA with at least 2048 bits/],
  ])('refuses a key %s', (_, change, message) => {
    const wrong = { ...GOOGLE, ...HTTPS, GOOGLE_WALLET_KEY: JSON.stringify({ ...KEY, ...change }) };
    expect(() => read(wrong)).toThrow(message);
  });
});
