import { Injectable } from '@nestjs/common';
import { mkdir, open, readdir, readFile, rename, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { Config } from '#kernel/config.js';
import type { Verifier } from '#kernel/signed-note.js';
import { openedCheckpoint, type TreeHead } from './checkpoint.js';

const WITHIN_MS = 20_000;
const DIGITS = 16;
const SUFFIX = '.checkpoint';
const LATEST = 'latest';

export type StoredCheckpoint = TreeHead & { file: string };

/** A checkpoint cannot be read, or was not signed by this key. */
export class UnreadableCheckpointError extends Error {}

/** The signed checkpoints in a folder, one file each, named by size so that they sort by name. */
export class CheckpointFiles {
  private underWay: Promise<unknown> | undefined;

  constructor(readonly dir: string) {}

  /** In the order of their sizes; in place of one that cannot be read, why. A folder that does not exist is empty. */
  async *read(verifier: Verifier): AsyncIterable<StoredCheckpoint | UnreadableCheckpointError> {
    for (const name of await this.names()) {
      try {
        yield await this.readOne(name, verifier);
      } catch (error) {
        if (!(error instanceof UnreadableCheckpointError)) throw error;
        yield error;
      }
    }
  }

  /** @throws UnreadableCheckpointError */
  newest(verifier: Verifier): Promise<StoredCheckpoint | undefined> {
    return this.inTime(async () => {
      const last = (await this.names()).at(-1);
      return last === undefined ? undefined : this.readOne(last, verifier);
    });
  }

  /** On disk when it returns. `latest` is replaced whole, never seen half written. */
  write(size: number, note: string): Promise<void> {
    return this.inTime(() => this.replace(size, note));
  }

  /**
   * A folder on another machine may stop answering, and such a call cannot be ended. One at a time is made, because
   * each that hangs takes one of the few threads that all files share.
   */
  private async inTime<R>(work: () => Promise<R>): Promise<R> {
    if (this.underWay) throw new Error(`${this.dir} still does not answer`);
    const done = work().finally(() => (this.underWay = undefined));
    this.underWay = done;
    const late = new AbortController();
    const overdue = wait(WITHIN_MS, undefined, { signal: late.signal }).then(() => {
      throw new Error(`${this.dir} did not answer within ${WITHIN_MS / 1000} s`);
    });
    try {
      return await Promise.race([done, overdue]);
    } finally {
      late.abort();
      overdue.catch(() => undefined);
      done.catch(() => undefined);
    }
  }

  private async replace(size: number, note: string): Promise<void> {
    await makeFolder(this.dir);
    // In this order: what has its own file counts as written, and is not written again.
    for (const name of [LATEST, nameOf(size)]) {
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

  private async names(): Promise<string[]> {
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
    const head = openedCheckpoint(await readFile(file, 'utf8'), verifier);
    // A checkpoint under another name would hide that its own is missing.
    if (!head || name !== nameOf(head.size)) {
      throw new UnreadableCheckpointError(
        `${file} is no checkpoint that the key ${verifier.name} has signed`,
      );
    }
    return { ...head, file };
  }
}

function nameOf(size: number): string {
  return size.toString().padStart(DIGITS, '0') + SUFFIX;
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
async function makeFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') return;
    if (code !== 'ENOENT' || dirname(folder) === folder) throw error;
    const above = await stat(dirname(folder)).catch(() => undefined);
    if (above) throw error;
    await makeFolder(dirname(folder));
    await mkdir(folder);
  }
}
