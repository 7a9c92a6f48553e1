import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createHash, randomBytes } from 'node:crypto';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { readSealed, computeSha256, writeSealed, type SealedFile } from './sealed-file.js';

const key = randomBytes(32);
/** Does not compress, so it takes three chunks. */
const content = randomBytes(2_500_000);
let folder: string;
let path: string;
let written: SealedFile;

const read = (from = path, name = 'cards', by = key) => buffer(readSealed(from, by, name));
/** Where each chunk begins and ends. */
const chunksIn = (bytes: Buffer) => {
  const chunks: Buffer[] = [];
  for (let at = 0; at < bytes.length;) {
    const size = 4 + (bytes.readUInt32BE(at) & 0x7fff_ffff);
    chunks.push(bytes.subarray(at, at + size));
    at += size;
  }
  return chunks;
};

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'inkpad-sealed-'));
  path = join(folder, 'cards.sealed');
  written = await writeSealed(path, key, 'cards', Readable.from([content]));
});

afterAll(() => rmSync(folder, { recursive: true }));

describe('a sealed file', () => {
  it('has what was written, and its checksum is that of its bytes', async () => {
    const bytes = readFileSync(path);
    expect(chunksIn(bytes)).toHaveLength(3);
    expect((await read()).equals(content)).toBe(true);
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    expect(written).toEqual({ bytes: bytes.length, sha256 });
    expect(await computeSha256(path)).toBe(sha256);
  });

  it('may be empty', async () => {
    const empty = join(folder, 'empty.sealed');
    await writeSealed(empty, key, 'empty', Readable.from([]));
    expect(await read(empty, 'empty')).toHaveLength(0);
  });

  it('shows nothing of what is in it', async () => {
    const named = join(folder, 'named.sealed');
    await writeSealed(named, key, 'named', Readable.from([Buffer.from('Anna Example')]));
    expect(readFileSync(named).includes('Anna')).toBe(false);
  });

  it('does not open with another key, or under another name', async () => {
    await expect(read(path, 'cards', randomBytes(32))).rejects.toThrow();
    await expect(read(path, 'rewards')).rejects.toThrow();
  });

  it.each([
    ['lacks its end', ([a, b]: Buffer[]) => [a, b]],
    ['lacks its middle', ([a, , c]: Buffer[]) => [a, c]],
    ['has a chunk twice', ([a, b, c]: Buffer[]) => [a, b, b, c]],
    ['has chunks in another order', ([a, b, c]: Buffer[]) => [b, a, c]],
    ['has something behind its end', ([a, b, c]: Buffer[]) => [a, b, c, Buffer.from('more')]],
    ['was cut within a chunk', ([a, b]: Buffer[]) => [a, b?.subarray(0, 1_000)]],
    ['names a chunk of gigabytes', () => [Buffer.from('7fffffff', 'hex')]],
    [
      'has another bit somewhere',
      ([a, b, c]: Buffer[]) => {
        const changed = Buffer.from(b ?? []);
        changed[500] = (changed[500] ?? 0) ^ 1;
        return [a, changed, c];
      },
    ],
  ])('does not open when it %s', async (_what, change) => {
    const otherFile = join(folder, 'other.sealed');
    const chunks = change(chunksIn(readFileSync(path))).filter((chunk) => chunk !== undefined);
    writeFileSync(otherFile, Buffer.concat(chunks));
    await expect(read(otherFile)).rejects.toThrow();
  });

  it('is not written over another file', async () => {
    const otherFile = join(folder, 'there.sealed');
    copyFileSync(path, otherFile);
    await expect(writeSealed(otherFile, key, 'cards', Readable.from([content]))).rejects.toThrow(
      'EEXIST',
    );
  });
});
