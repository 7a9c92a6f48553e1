import { Injectable } from '@nestjs/common';
import { mkdir, open, readdir, readFile, rename, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { Config } from '#kernel/config.js';
import type { Verifier } from '#kernel/signed-note.js';
import { openCheckpoint, type TreeHead } from './checkpoint.js';

const FILE_TIMEOUT_MS = 20_000;
const FILE_NAME_DIGITS = 16;
const SUFFIX = '.checkpoint';
const LATEST = 'latest';

export type StoredCheckpoint = TreeHead & { file: string };

/** A checkpoint cannot be read, or was not signed by this key. */
export class UnreadableCheckpointError extends Error {}

/** The signed checkpoints in a folder, one file each, named by size so that they sort by name. */
export class CheckpointFiles {
  private pending: Promise<unknown> | undefined;

  constructor(readonly dir: string) {}

  /** In the order of their sizes; in place of one that cannot be read, why. A folder that does not exist is empty. */
  async *read(verifier: Verifier): AsyncIterable<StoredCheckpoint | UnreadableCheckpointError> {
    for (const name of await this.listNames()) {
      try {
        yield await this.readOne(name, verifier);
      } catch (error) {
        if (!(error instanceof UnreadableCheckpointError)) throw error;
        yield error;
      }
    }
  }

  /** @throws UnreadableCheckpointError */
  findNewest(verifier: Verifier): Promise<StoredCheckpoint | undefined> {
    return this.withTimeout(async () => {
      const last = (await this.listNames()).at(-1);
      return last === undefined ? undefined : this.readOne(last, verifier);
    });
  }

  /** On disk when it returns. `latest` is replaced whole, never seen half written. */
  write(size: number, note: string): Promise<void> {
    return this.withTimeout(() => this.replace(size, note));
  }

  /**
   * A folder on another machine may stop answering, and such a call cannot be ended. One at a time is made, because
   * each that hangs takes one of the few threads that all files share.
   */
  private async withTimeout<R>(work: () => Promise<R>): Promise<R> {
    if (this.pending) throw new Error(`${this.dir} still does not answer`);
    const result = work().finally(() => (this.pending = undefined));
    this.pending = result;
    const abortTimeout = new AbortController();
    const timeout = wait(FILE_TIMEOUT_MS, undefined, { signal: abortTimeout.signal }).then(() => {
      throw new Error(`${this.dir} did not answer within ${FILE_TIMEOUT_MS / 1000} s`);
    });
    try {
      return await Promise.race([result, timeout]);
    } finally {
      abortTimeout.abort();
      timeout.catch(() => undefined);
      result.catch(() => undefined);
    }
  }

  private async replace(size: number, note: string): Promise<void> {
    await createFolder(this.dir);
    // In this order: what has its own file counts as written, and is not written again.
    for (const name of [LATEST, toFileName(size)]) {
      const draft = join(this.dir, `.${name}.${process.pid}`);
      const file = await open(draft, 'w', 0o644);
      try {
        await file.writeFile(note);
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(draft, join(this.dir, name));
    }
    const folder = await open(this.dir);
    try {
      await folder.sync();
    } finally {
      await folder.close();
    }
  }

  private async listNames(): Promise<string[]> {
    try {
      const names = await readdir(this.dir);
      return names.filter((name) => /^\d{16}\.checkpoint$/.test(name)).sort();
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
      throw error;
    }
  }

  private async readOne(name: string, verifier: Verifier): Promise<StoredCheckpoint> {
    const file = join(this.dir, name);
    const head = openCheckpoint(await readFile(file, 'utf8'), verifier);
    // A checkpoint under another name would hide that its own is missing.
    if (!head || name !== toFileName(head.size)) {
      throw new UnreadableCheckpointError(
        `${file} is no checkpoint that the key ${verifier.name} has signed`,
      );
    }
    return { ...head, file };
  }
}

function toFileName(size: number): string {
  return size.toString().padStart(FILE_NAME_DIGITS, '0') + SUFFIX;
}

/** The folder of the settings. */
@Injectable()
export class CheckpointFolder {
  readonly files: CheckpointFiles | null;

  constructor({ checkpoints: { dir } }: Config) {
    this.files = dir === null ? null : new CheckpointFiles(dir);
  }
}

/** Node's own `recursive` never ends where nothing can be made, such as under /proc. */
async function createFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') return;
    if (code !== 'ENOENT' || dirname(folder) === folder) throw error;
    const parent = await stat(dirname(folder)).catch(() => undefined);
    if (parent) throw error;
    await createFolder(dirname(folder));
    await mkdir(folder);
  }
}
