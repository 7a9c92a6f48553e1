import { mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { newSignerKey, signerOf, verifierKey } from '#kernel/signed-note.js';
import { openCheckpoint } from '#transparency/checkpoint.js';
import { hashLeaf } from '#transparency/leaf.js';
import { hashRoot } from '#transparency/merkle-tree.js';
import type { StoredEvent } from '#event-store/port/event-store.js';
import { verifyCheckpoint } from '../../clients/verifier/verifier.mjs';
import { eventually } from './eventually.js';
import { startDispatcher } from './webhooks.js';
import type { Service } from './service.js';

/** A key of its own, a folder, and what belongs to them. */
export function checkpointKey(name = 'shop.example/inkpad') {
  const key = newSignerKey(name);
  const signer = signerOf(key);
  if (!signer) throw new Error('a new key must be read');
  const dir = mkdtempSync(join(tmpdir(), 'inkpad-checkpoints-'));
  const verifier = verifierKey(signer);
  const opened = (note: string) => verifyCheckpoint(note, verifier);
  return {
    settings: { CHECKPOINT_KEY: key, CHECKPOINT_DIR: dir },
    signer,
    verifier,
    dir,
    opened,
    /** The files of the folder, without `latest`. */
    files: () =>
      readdirSync(dir)
        .filter((name) => name.endsWith('.checkpoint'))
        .sort(),
    /** What the folder says is the newest. */
    latest: () => {
      try {
        return opened(readFileSync(join(dir, 'latest'), 'utf8'));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { size: 0, root: null };
        throw error;
      }
    },
  };
}

export function rootOfEvents(events: StoredEvent[]): string {
  return hashRoot(Buffer.concat(events.map(hashLeaf))).toString('base64');
}

/**
 * A dispatcher that signs a checkpoint each time one is asked for. `signed` asks until all events that there are now
 * have one, and it is published, which comes after the folder.
 */
export async function startSigning(
  service: Service,
  key: ReturnType<typeof checkpointKey>,
  settings: NodeJS.ProcessEnv = {},
) {
  const dispatcher = await startDispatcher(service, { ...key.settings, ...settings });
  const { database } = service;
  const ask = () => database.query(`select pg_notify('inkpad_checkpoint', '')`);
  const signed = async () => {
    const { length } = await service.history();
    const newest = await eventually(
      async () => {
        await ask();
        const { rows } = await database.query<{ checkpoint: string | null }>(
          'select checkpoint from transparency_log',
        );
        return openCheckpoint(rows[0]?.checkpoint ?? '', key.signer);
      },
      (head) => head !== undefined && head.size >= length,
    );
    if (!newest) throw new Error('nothing was signed');
    return newest;
  };
  return { dispatcher, ask, signed };
}
