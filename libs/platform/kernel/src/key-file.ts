import { existsSync, linkSync, mkdirSync, unlinkSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

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

/**
 * Creates a folder and its parents. Node's own `recursive` never returns where nothing can be created, such as under
 * /proc.
 */
function createFolder(folder: string): void {
  if (existsSync(folder)) return;
  createFolder(dirname(folder));
  try {
    mkdirSync(folder);
  } catch (error) {
    // Another process was first.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}
