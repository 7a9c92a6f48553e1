import { existsSync, linkSync, mkdirSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { ConfigError } from './config-error.js';
import { describeFileError } from './file-errors.js';

/**
 * Loads a key file of DATA_DIR, which is created if there is none.
 * @throws ConfigError
 */
export function loadKeyFile(
  path: string,
  createKey: () => string,
): { isNew: boolean; text: string } {
  try {
    const isNew = !existsSync(path) && createKeyFile(path, createKey());
    return { isNew, text: readFileSync(path, 'utf8') };
  } catch (cause) {
    const description = describeFileError(cause);
    if (description === undefined) throw cause;
    throw new ConfigError(`DATA_DIR: ${path} cannot be used: ${description}.`, { cause });
  }
}

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
