import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSignerKey, parseSigner } from '#platform/kernel/signed-note.js';
import { CheckpointFiles } from './checkpoint-folder.service.js';
import { signCheckpoint } from './checkpoint.js';

describe('CheckpointFiles', () => {
  let dir: string;

  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'inkpad-checkpoints-'));
  });
  afterEach(() => rmSync(dir, { recursive: true }));

  it('does not list a checkpoint whose write has failed, so that it is written again', async () => {
    const signer = parseSigner(createSignerKey('shop.example'));
    if (!signer) throw new Error('a new key signs');
    const note = signCheckpoint({ size: 3, root: Buffer.alloc(32, 1) }, signer);
    const files = new CheckpointFiles(dir);
    mkdirSync(join(dir, 'latest'));
    await expect(files.write(3, note)).rejects.toThrow();
    expect(await files.findNewest(signer)).toBeUndefined();
    rmdirSync(join(dir, 'latest'));
    await files.write(3, note);
    expect((await files.findNewest(signer))?.size).toBe(3);
    expect(readFileSync(join(dir, 'latest'), 'utf8')).toBe(note);
  });

  it('deletes what a later checkpoint covers, one part of the folder after another', async () => {
    const now = new Date('2026-11-26T12:00:00Z');
    const names = Array.from(
      { length: 2_500 },
      (_, i) => `${String(i).padStart(16, '0')}.checkpoint`,
    );
    // One a minute, from ten days ago on.
    for (const [i, name] of names.entries()) {
      writeFileSync(join(dir, name), '');
      const at = new Date(Number(now) - 10 * 86_400_000 + i * 60_000);
      utimesSync(join(dir, name), at, at);
    }
    writeFileSync(join(dir, 'latest'), '');
    const files = new CheckpointFiles(dir);
    const deleted = [];
    for (let next: string | null = null, steps = 0; steps === 0 || next !== null; steps++) {
      const step = await files.thin(next, now);
      deleted.push(step.deleted);
      next = step.next;
    }
    expect(deleted.length).toBe(3);
    const left = readdirSync(dir).filter((name) => name !== 'latest');
    // The last of each of 41 hours, and of the 40 minutes of the last one.
    expect(left).toHaveLength(42);
    expect(left).toContain(names.at(-1));
    expect(left[0]).toBe(names[59]);
    expect(await files.thin(null, now)).toEqual({ deleted: 0, next: null });
    expect(readdirSync(dir)).toContain('latest');
  });
});
