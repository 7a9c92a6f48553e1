import { existsSync, readFileSync } from 'node:fs';
import { loadCheckpointSigner } from '#platform/kernel/checkpoint-key.js';
import { type Config } from '#configuration/config.js';
import { ConfigError } from '#platform/kernel/config-error.js';
import { parseVerifier, type Verifier } from '#platform/kernel/signed-note.js';
import { CheckpointFiles } from '#outbound/transparency/checkpoint-folder.service.js';
import { CheckpointVerification } from '#outbound/transparency/checkpoint-verification.service.js';
import { Tree } from '#outbound/transparency/tree.service.js';
import type { VerificationServices } from './verification-services.js';

/**
 * @param key a verifier key or a file that holds one; by default that of the settings
 * @returns what was found, as a sentence, and what differs
 * @throws ConfigError
 */
export async function verifyCheckpoints(
  { config, pool, store }: Pick<VerificationServices, 'config' | 'pool' | 'store'>,
  dir: string,
  key: string | undefined,
): Promise<{ summary: string; differences: string[] }> {
  if (!existsSync(dir)) throw new ConfigError(`--checkpoints: there is no folder ${dir}`);
  const verifier = key === undefined ? getOwnKey(config) : parseVerifierKey(key);
  const verification = new CheckpointVerification(store, new Tree(pool));
  const { checkpoints, coveredCount, errors } = await verification.verify(
    new CheckpointFiles(dir),
    verifier,
  );
  if (checkpoints === 0 && errors.length === 0) {
    throw new ConfigError(`--checkpoints: there are no checkpoints in ${dir}`);
  }
  return {
    summary: `${checkpoints} checkpoints of ${verifier.name}: the first ${coveredCount} events are there, unchanged and in place`,
    differences: errors,
  };
}

function getOwnKey(config: Config): Verifier {
  const signer = loadCheckpointSigner(config, false);
  if (!signer) throw new ConfigError('--checkpoints needs --key, since CHECKPOINT_KEY is not set.');
  return signer;
}

/** @param key itself, or a file that holds it @throws ConfigError */
export function parseVerifierKey(key: string): Verifier {
  const verifier = parseVerifier(existsSync(key) ? readFileSync(key, 'utf8') : key);
  if (!verifier) throw new ConfigError('--key: must be a verifier key, or a file that holds one');
  return verifier;
}
