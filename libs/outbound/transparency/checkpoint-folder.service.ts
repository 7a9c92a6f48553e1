import { Injectable } from '@nestjs/common';
import { mkdir, open, readdir, readFile, rename, stat, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Config } from '#configuration/config.js';
import type { Verifier } from '#platform/kernel/signed-note.js';
import { withTimeout } from '#platform/kernel/with-timeout.js';
import { findSuperfluous } from './checkpoint-thinning.js';
import { openCheckpoint, type TreeHead } from './checkpoint.js';

const FILE_TIMEOUT_MS = 20_000;
const FILE_NAME_DIGITS = 16;
const SUFFIX = '.checkpoint';
const LATEST = 'latest';
/** Limits the files that one step of thinning looks at: a folder on another machine takes a millisecond for each. */
const THINNING_BATCH_SIZE = 1_000;

export type StoredCheckpoint = TreeHead & { file: string };

/** A checkpoint is unreadable, or was not signed by this key. */
export class UnreadableCheckpointError extends Error {}

/**
 * Reads and writes signed checkpoints in a folder, one file each. Their names are their sizes, so they sort by name.
 */
export class CheckpointFiles {
  private pending: Promise<unknown> | undefined;

  constructor(readonly dir: string) {}

  /**
   * Reads all checkpoints by size, and yields an error for an unreadable one. A folder that does not exist is empty.
   */
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
    return this.call(async () => {
      const last = (await this.listNames()).at(-1);
      return last === undefined ? undefined : this.readOne(last, verifier);
    });
  }

  /** Writes a checkpoint and syncs it to disk. `latest` is replaced atomically. */
  write(size: number, note: string): Promise<void> {
    return this.call(() => this.replace(size, note));
  }

  /**
   * Deletes old checkpoints that a later one covers (ADR-0036), one part of the folder at a time.
   * @param from the name at which the part begins; null: at the oldest
   * @returns how many were deleted, and where the next part begins; null: that was the last
   */
  thin(from: string | null, now: Date): Promise<{ deleted: number; next: string | null }> {
    return this.call(async () => {
      const all = await this.listNames();
      const start = from === null ? 0 : all.findIndex((name) => name >= from);
      const names = start < 0 ? [] : all.slice(start, start + THINNING_BATCH_SIZE);
      const files = [];
      for (const name of names) files.push({ name, at: (await stat(join(this.dir, name))).mtime });
      const superfluous = findSuperfluous(files, now);
      for (const name of superfluous) await unlink(join(this.dir, name));
      // A later file may cover the last one.
      const next = names.length < THINNING_BATCH_SIZE ? null : (names.at(-1) ?? null);
      return { deleted: superfluous.length, next };
    });
  }

  /**
   * Bounds the time of a call. A folder on another machine may stop responding, and such a call cannot be aborted. Only
   * one runs at a time, because each hanging call occupies one of the few threads for files.
   */
  private async call<R>(work: () => Promise<R>): Promise<R> {
    if (this.pending) throw new Error(`${this.dir} still does not respond`);
    const result = work().finally(() => (this.pending = undefined));
    this.pending = result;
    return withTimeout(
      result,
      FILE_TIMEOUT_MS,
      () => new Error(`${this.dir} did not respond within ${FILE_TIMEOUT_MS / 1000} s`),
    );
  }

  private async replace(size: number, note: string): Promise<void> {
    await createFolder(this.dir);
    // In this order: a checkpoint with its own file counts as written, and is not written again.
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
    // A checkpoint under another name would hide that the right one is missing.
    if (!head || name !== toFileName(head.size)) {
      throw new UnreadableCheckpointError(
        `${file} is not a checkpoint that the key ${verifier.name} has signed`,
      );
    }
    return { ...head, file };
  }
}

function toFileName(size: number): string {
  return size.toString().padStart(FILE_NAME_DIGITS, '0') + SUFFIX;
}

/** Provides the folder of the settings. */
@Injectable()
export class CheckpointFolder {
  readonly files: CheckpointFiles | null;

  constructor({ checkpoints: { dir } }: Config) {
    this.files = dir === null ? null : new CheckpointFiles(dir);
  }
}

/** Creates a folder and its parents. Node's own `recursive` never ends where nothing can be created, as in /proc. */
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
