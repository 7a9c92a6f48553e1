import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigError } from './config-error.js';
import { type PlatformConfig } from './platform-config.js';
import { loadKeyFile } from './key-file.js';
import { createSignerKey, parseSigner, type Signer } from './signed-note.js';

/**
 * Loads the key that signs checkpoints. Outside production it is created once in DATA_DIR.
 * @param canCreate whether to create it now if there is none
 * @returns null where no key is configured: checkpoints are not signed
 * @throws ConfigError
 */
export function loadCheckpointSigner(config: PlatformConfig, canCreate: boolean): Signer | null {
  const { key } = config.checkpoints;
  if (key !== null) return readSigner(key, 'CHECKPOINT_KEY');
  if (config.isProduction) return null;
  const path = join(config.dataDir, 'checkpoint.key');
  if (!canCreate && !existsSync(path)) return null;
  const createKey = () => `${createSignerKey(getKeyName(config.publicUrl))}\n`;
  return readSigner(loadKeyFile(path, createKey).text, path);
}

/** Returns the URL without its scheme, as C2SP recommends for key names. */
export function getKeyName(publicUrl: string): string {
  const { host, pathname } = new URL(publicUrl);
  return (host + pathname).replace(/\/$/, '').replaceAll('+', '-');
}

function readSigner(text: string, source: string): Signer {
  const signer = parseSigner(text);
  if (!signer) throw new ConfigError(`${source} does not hold a signer key`);
  return signer;
}
