import { describe, expect, it } from '@jest/globals';
import { mkdtempSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ConfigError, readConfig } from './config.js';

const folder = () => mkdtempSync(join(tmpdir(), 'inkpad-config-'));
const DATABASE_URL = 'postgres://u:p@localhost:5432/x';

describe('settings', () => {
  it('have defaults', () => {
    const config = readConfig({ DATABASE_URL, DATA_DIR: folder() });
    expect(config).toMatchObject({
      port: 3000,
      publicUrl: 'http://localhost:3000',
      rateLimitPerMinute: 300,
      trustProxyHops: 0,
      webhookAllowedCidrs: [],
      webhookAllowInsecureTargets: false,
      databaseMigrationUrl: DATABASE_URL,
    });
  });

  it('name every bad value in one message', () => {
    const bad = { DATABASE_URL: 'mysql://x', PORT: 'http', TRUST_PROXY_HOPS: '-1' };
    expect(() => readConfig(bad)).toThrow(/DATABASE_URL[^]*PORT|PORT[^]*DATABASE_URL/);
    expect(() => readConfig(bad)).toThrow(/TRUST_PROXY_HOPS/);
  });

  it('take ranges of addresses, and nothing that only looks like one', () => {
    const read = (WEBHOOK_ALLOWED_CIDRS: string) =>
      readConfig({ DATABASE_URL, DATA_DIR: folder(), WEBHOOK_ALLOWED_CIDRS }).webhookAllowedCidrs;
    expect(read('10.1.0.0/16, fd12::/48').map(String)).toEqual(['10.1.0.0/16', 'fd12::/48']);
    for (const wrong of ['10.1.0.0', '10/8', '10.0.0.0/33', '10.0.0.0/8,', 'shop.example/24']) {
      expect(() => read(wrong)).toThrow(/WEBHOOK_ALLOWED_CIDRS: must be ranges/);
    }
  });

  it('find the database of a running service', () => {
    const dataDir = folder();
    expect(() => readConfig({ DATA_DIR: dataDir })).toThrow(ConfigError);
    writeFileSync(join(dataDir, 'run.json'), JSON.stringify({ postgres: { url: DATABASE_URL } }));
    expect(readConfig({ DATA_DIR: dataDir }).databaseUrl).toBe(DATABASE_URL);
  });

  it('make a master key once, for the owner alone', () => {
    const dataDir = folder();
    const first = readConfig({ DATABASE_URL, DATA_DIR: dataDir }).masterKey;
    expect(first).toHaveLength(32);
    expect(readConfig({ DATABASE_URL, DATA_DIR: dataDir }).masterKey.equals(first)).toBe(true);
    expect(statSync(join(dataDir, 'master.key')).mode & 0o777).toBe(0o600);
  });

  it('ask for a master key in production', () => {
    const production = { DATABASE_URL, DATA_DIR: folder(), NODE_ENV: 'production' };
    expect(() => readConfig(production)).toThrow(/MASTER_KEY must be set/);
    expect(() => readConfig({ ...production, MASTER_KEY: 'short' })).toThrow(/MASTER_KEY/);
  });
});
