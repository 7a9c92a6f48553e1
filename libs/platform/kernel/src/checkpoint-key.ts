import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigError } from './config-error.js';
import { type PlatformConfig } from './platform-config.js';
import { makeKeyFile } from './key-file.js';
import { newSignerKey, signerOf, type Signer } from './signed-note.js';

/**
 * Who signs the checkpoints. Outside production a key is made once in DATA_DIR.
 * @param make whether to make it now if there is none
 * @returns null: none is set up, and no checkpoints are signed
 * @throws ConfigError
 */
export function checkpointSigner(config: PlatformConfig, make: boolean): Signer | null {
  const { key } = config.checkpoints;
  if (key !== null) return readSigner(key, 'CHECKPOINT_KEY');
  if (config.production) return null;
  const path = join(config.dataDir, 'checkpoint.key');
  if (!existsSync(path)) {
    if (!make) return null;
    makeKeyFile(path, `${newSignerKey(keyNameFor(config.publicUrl))}\n`);
  }
  return readSigner(readFileSync(path, 'utf8'), path);
}

/** The URL without its scheme, as C2SP recommends. */
export function keyNameFor(publicUrl: string): string {
  const { host, pathname } = new URL(publicUrl);
  return (host + pathname).replace(/\/$/, '').replaceAll('+', '-');
}

function readSigner(text: string, where: string): Signer {
  const signer = signerOf(text);
  if (!signer) throw new ConfigError(`${where} does not hold a signer key`);
  return signer;
}
