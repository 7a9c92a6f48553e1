import { createHmac, timingSafeEqual } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { ConfigError } from '#platform/kernel/config-error.js';
import { getKeyId, Keyring, createMasterKey, type MasterKey } from '#platform/kernel/keyring.js';
import { readSecretFiles } from '#configuration/secret-files.js';
import { toCanonicalJson } from '#platform/event-store/port/canonical-json.js';
import type { Table } from './backup-tables.js';
import type { LoggedPosition } from '../logged-positions.js';
import { computeSha256, type SealedFile } from './sealed-file.js';

export const FORMAT = 'inkpad-backup/1';
export const MANIFEST = 'manifest.json';
const PURPOSE = 'backups';

/** Readable without any key; `mac` shows whether it is unchanged. */
export type Manifest = {
  format: typeof FORMAT;
  id: string;
  /** Everything that was acknowledged by then is in it, and perhaps what followed within the same second. */
  taken_at: string;
  inkpad: string;
  postgresql: string;
  /** Where it was taken: host, port and database. */
  database: string;
  engine: 'postgresql' | 'eventstoredb';
  migrations: string[];
  log: { events: number; last: { stream: string; revision: number; hash: string } | null };
  /** Fingerprints, in hexadecimal, of the keys without which it cannot be used; two while the key is being changed. */
  master_keys: string[];
  /** The key that encrypts the files, itself encrypted with the first master key; in base64. */
  key: string;
  tables: (Table & { rows: number; file: string } & SealedFile)[];
  sequences: Record<string, string>;
  days: string[];
  positions: LoggedPosition[];
  /** Of the data folder. */
  local: ({ name: string; file: string } & SealedFile)[];
  mac: string;
};

export const getKeyContext = (id: string): string => `backup ${id}`;

export function sealKey(key: Buffer, id: string, masterKey: MasterKey): string {
  return new Keyring([masterKey], masterKey)
    .seal(PURPOSE, key, getKeyContext(id))
    .toString('base64');
}

export function computeMac(manifest: Omit<Manifest, 'mac'>, key: Buffer): string {
  return createHmac('sha256', key).update(toCanonicalJson(manifest)).digest('hex');
}

/** @throws ConfigError when the folder holds no complete backup */
export function readManifest(folder: string): Manifest {
  const path = join(folder, MANIFEST);
  let manifest: Manifest;
  try {
    manifest = JSON.parse(readFileSync(path, 'utf8')) as Manifest;
  } catch (cause) {
    throw new ConfigError(
      existsSync(folder)
        ? `${folder} is not a complete backup: ${path} is missing or damaged.`
        : `${folder} does not exist.`,
      { cause },
    );
  }
  if (manifest.format !== FORMAT) {
    throw new ConfigError(
      `${path} has the format ${String(manifest.format)}; this version reads ${FORMAT}.`,
    );
  }
  return manifest;
}

/**
 * Opens the key of the files.
 * @throws ConfigError when a master key is missing, or the manifest was changed
 */
export function openManifest(manifest: Manifest, keys: MasterKey[]): Buffer {
  const missing = manifest.master_keys.filter(
    (expected) => !keys.some(({ fingerprint }) => fingerprint.toString('hex') === expected),
  );
  if (missing.length > 0) throw createMissingKeyError(missing, keys);
  const [first] = keys;
  if (!first) throw new Error('a backup names the key that it is sealed with');
  let key: Buffer;
  try {
    const sealed = Buffer.from(manifest.key, 'base64');
    key = new Keyring(keys, first).open(PURPOSE, sealed, getKeyContext(manifest.id));
  } catch (cause) {
    throw new ConfigError(`${MANIFEST} was changed: its key cannot be decrypted.`, { cause });
  }
  const { mac, ...signed } = manifest;
  const [theirs, own] = [mac, computeMac(signed, key)].map((text) => Buffer.from(text, 'hex'));
  if (!theirs || !own || theirs.length !== own.length || !timingSafeEqual(theirs, own)) {
    throw new ConfigError(`${MANIFEST} was changed after the backup was made.`);
  }
  return key;
}

function createMissingKeyError(missing: string[], keys: MasterKey[]): ConfigError {
  const ids = missing.map((fingerprint) => fingerprint.slice(0, 8)).join(' and ');
  const has = keys.map(({ fingerprint }) => getKeyId(fingerprint)).join(' and ');
  return new ConfigError(
    `This backup can be opened with the master key ${ids} alone, and ${has ? `the key given is ${has}` : 'no key is given'}: set MASTER_KEY or MASTER_KEY_FILE (and MASTER_KEY_PREVIOUS where two are named) to what the service had when the backup was made. Nothing was changed.`,
  );
}

/**
 * Reads the master keys of the settings, or of the data folder. Unlike a start, this creates none.
 * @throws ConfigError
 */
export function readMasterKeys(environment: NodeJS.ProcessEnv): MasterKey[] {
  const { settings, errors } = readSecretFiles(
    Object.fromEntries(
      Object.entries(environment).filter(([name, value]) => value && name.startsWith('MASTER_KEY')),
    ),
  );
  if (errors.length > 0) throw new ConfigError(errors.join('\n'));
  const inFolder = join(resolve(environment['DATA_DIR'] || '.data'), 'master.key');
  const texts = [settings['MASTER_KEY'], settings['MASTER_KEY_PREVIOUS']];
  if (!texts[0] && existsSync(inFolder)) texts[0] = readFileSync(inFolder, 'utf8');
  return texts.flatMap((text) => {
    if (!text) return [];
    const bytes = Buffer.from(text, 'base64');
    if (bytes.length !== 32) throw new ConfigError('MASTER_KEY must be 32 bytes in base64.');
    return [createMasterKey(bytes)];
  });
}

/** @throws ConfigError that names the first file that is missing or was changed */
export async function checkFiles(folder: string, manifest: Manifest): Promise<void> {
  for (const { file, sha256 } of [...manifest.tables, ...manifest.local]) {
    const path = join(folder, file);
    const checksum = existsSync(path) ? await computeSha256(path) : null;
    if (checksum === sha256) continue;
    throw new ConfigError(
      `${path} is ${checksum === null ? 'missing' : 'not what was backed up'}: the backup is damaged. Nothing was changed.`,
    );
  }
}
