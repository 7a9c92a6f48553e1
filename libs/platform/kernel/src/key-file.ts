import { linkSync, unlinkSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { createFolder } from './file-errors.js';

/**
 * Creates a key file that only its owner may read. An existing one stays.
 * @returns false when there is one already, perhaps from another process that was first
 */
export function createKeyFile(path: string, key: string): boolean {
  createFolder(dirname(path));
  const draft = `${path}.${process.pid}`;
  writeFileSync(draft, key, { mode: 0o600 });
  try {
    // link instead of rename: when two processes start at once, the second keeps the first one's key.
    linkSync(draft, path);
    return true;
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
    return false;
  } finally {
    unlinkSync(draft);
  }
}
