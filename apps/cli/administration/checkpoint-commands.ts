import { readFileSync, writeFileSync } from 'node:fs';
import type { Command } from 'commander';
import pg from 'pg';
import { loadCheckpointSigner, getKeyName } from '#platform/kernel/checkpoint-key.js';
import { Config, readConfig } from '#configuration/config.js';
import { ConfigError } from '#platform/kernel/config-error.js';
import {
  isKeyName,
  createSignerKey,
  parseSigner,
  renderVerifierKey,
} from '#platform/kernel/signed-note.js';
import { Checkpoints } from '#outbound/transparency/checkpoints.service.js';
import { openCheckpoint } from '#outbound/transparency/checkpoint.js';
import { Tree } from '#outbound/transparency/tree.service.js';
import { runProgram } from '../run-program.js';
import { withServices } from '../command-services.js';

/** Adds commands for the key that signs the history, and for what was signed with it. */
export function addCheckpointCommands(program: Command): void {
  program
    .command('checkpoint:key')
    .description('prints the verifier key: publish it, so that others can check the checkpoints')
    .action(() => {
      runProgram(async () => {
        const signer = loadCheckpointSigner(readConfig(process.env), false);
        if (!signer) throw new ConfigError('CHECKPOINT_KEY is not set, so nothing is signed.');
        console.log(JSON.stringify({ name: signer.name, verifier_key: renderVerifierKey(signer) }));
      });
    });

  program
    .command('checkpoint:create-key')
    .description('creates a key that signs checkpoints, and prints its verifier key')
    .requiredOption('--out <file>', 'where the signer key goes, for CHECKPOINT_KEY_FILE')
    .option('--name <name>', 'of the history; by default the public URL without its scheme')
    .action(({ out, name }: { out: string; name?: string }) => {
      runProgram(async () => {
        const keyName = name ?? getKeyName(readConfig(process.env).publicUrl);
        console.log(JSON.stringify(createKey(out, keyName)));
      });
    });

  program
    .command('checkpoint:consistency')
    .description('proves that the newest checkpoint continues an earlier one (clients/verifier)')
    .requiredOption('--from <file>', 'the file with the earlier checkpoint')
    .action(({ from }: { from: string }) => {
      runProgram(async () => console.log(JSON.stringify(await proveConsistency(from))));
    });
}

/** Creates a key. An existing file is never replaced: the key in it may be in use. */
function createKey(file: string, name: string): object {
  if (!isKeyName(name)) throw new ConfigError('--name: must have neither spaces nor a plus sign');
  const key = createSignerKey(name);
  const signer = parseSigner(key);
  if (!signer) throw new Error('a new key is one');
  try {
    writeFileSync(file, `${key}\n`, { mode: 0o600, flag: 'wx' });
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new ConfigError(`--out: ${file} cannot be created (${code ?? String(cause)})`, { cause });
  }
  return { name, verifier_key: renderVerifierKey(signer), file };
}

async function proveConsistency(file: string): Promise<object> {
  const first = readText(file);
  return withServices(async (app) => {
    const config = app.get(Config);
    const pool = app.get(pg.Pool);
    const signer = loadCheckpointSigner(config, false);
    const newest = await new Checkpoints(pool, config).findNewest();
    const head = signer && newest && openCheckpoint(newest.note, signer);
    if (!head) throw new ConfigError('No checkpoint has been signed with CHECKPOINT_KEY yet.');
    const { size = 0 } = openCheckpoint(first, signer) ?? {};
    if (size < 1 || size > head.size) {
      throw new ConfigError(
        `--from: ${file} holds no checkpoint of ${signer.name} for 1 to ${head.size} events`,
      );
    }
    const proof = await new Tree(pool).getConsistencyProof(size, head.size);
    return {
      first,
      second: newest.note,
      consistency_proof: proof.map((hash) => hash.toString('base64')),
    };
  });
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new ConfigError(`--from: ${file} cannot be read (${code ?? String(cause)})`, { cause });
  }
}
