import { HASH_BYTES } from './merkle-tree.js';
import { openNote, signNote, type Signer, type Verifier } from '#platform/kernel/signed-note.js';

/** The number of events in the tree, and its root. */
export type TreeHead = { size: number; root: Buffer };

/** Signs a checkpoint (C2SP tlog-checkpoint). The origin is the name of the key. */
export function signCheckpoint({ size, root }: TreeHead, signer: Signer): string {
  return signNote(`${signer.name}\n${size}\n${root.toString('base64')}\n`, signer);
}

/** Opens a checkpoint. @returns undefined unless this key has signed it */
export function openCheckpoint(note: string, verifier: Verifier): TreeHead | undefined {
  const text = openNote(note, verifier);
  const [origin, sizeText = '', rootText = ''] = text?.split('\n') ?? [];
  if (origin !== verifier.name || !/^(0|[1-9]\d{0,15})$/.test(sizeText)) return undefined;
  const root = Buffer.from(rootText, 'base64');
  const size = Number(sizeText);
  if (!Number.isSafeInteger(size) || root.length !== HASH_BYTES) return undefined;
  return root.toString('base64') === rootText ? { size, root } : undefined;
}
