import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { mkdirSync, mkdtempSync, readFileSync, rmdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSignerKey, parseSigner } from '#kernel/signed-note.js';
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
});
