import { createHash, type Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import { open as unseal, seal } from '#platform/kernel/sealing.js';

/** The bytes of one encrypted block, compressed. Each block is authenticated before any of it is used. */
const CHUNK_BYTES = 1 << 20;
/** Nonce and tag come on top. */
const MAX_BYTES = CHUNK_BYTES + 64;
const LENGTH_BYTES = 4;
/** In the length of a chunk: no other one follows. */
const LAST = 0x8000_0000;
/** Of gzip: higher ones take three times as long for a tenth less. */
const LEVEL = 3;

export type SealedFile = { bytes: number; sha256: string };

/**
 * Compresses and seals a stream into a new file, chunk by chunk. A chunk that is missing, repeated or in another file
 * does not open, because its seal covers the name, its number and whether it is the last one.
 */
export async function writeSealed(
  path: string,
  key: Buffer,
  name: string,
  plain: Readable,
): Promise<SealedFile> {
  const file = await open(path, 'wx', 0o600);
  try {
    const written = { bytes: 0, hash: createHash('sha256') };
    await pipeline(plain, createGzip({ level: LEVEL }), async (zipped: AsyncIterable<Buffer>) => {
      let number = 0;
      let buffered: Buffer | undefined;
      for await (const chunk of splitIntoChunks(zipped)) {
        if (buffered)
          await writeChunk(file, written, sealChunk(key, name, number++, buffered, false));
        buffered = chunk;
      }
      await writeChunk(
        file,
        written,
        sealChunk(key, name, number, buffered ?? Buffer.alloc(0), true),
      );
    });
    await file.sync();
    return { bytes: written.bytes, sha256: written.hash.digest('hex') };
  } finally {
    await file.close();
  }
}

/** Reads what `writeSealed` has written. Throws as soon as a block was changed. */
export function readSealed(path: string, key: Buffer, name: string): Readable {
  const unzipped = createGunzip();
  // An error of either ends the other, and with it whoever reads.
  pipeline(Readable.from(openChunks(path, key, name)), unzipped).catch((error: unknown) =>
    unzipped.destroy(error as Error),
  );
  return unzipped;
}

/** Computes the SHA-256 of a file as it is, without opening it. */
export async function computeSha256(path: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path, { highWaterMark: CHUNK_BYTES }), hash);
  return hash.digest('hex');
}

async function* splitIntoChunks(stream: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of stream) {
    pieces.push(piece);
    size += piece.length;
    while (size >= CHUNK_BYTES) {
      const all = Buffer.concat(pieces);
      yield all.subarray(0, CHUNK_BYTES);
      pieces = [all.subarray(CHUNK_BYTES)];
      size -= CHUNK_BYTES;
    }
  }
  if (size > 0) yield Buffer.concat(pieces);
}

function sealChunk(
  key: Buffer,
  name: string,
  number: number,
  chunk: Buffer,
  last: boolean,
): Buffer {
  const closed = seal(key, chunk, createSealContext(name, number, last));
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeUInt32BE((closed.length | (last ? LAST : 0)) >>> 0);
  return Buffer.concat([length, closed]);
}

async function writeChunk(
  file: FileHandle,
  written: { bytes: number; hash: Hash },
  chunk: Buffer,
): Promise<void> {
  await file.writeFile(chunk);
  written.hash.update(chunk);
  written.bytes += chunk.length;
}

async function* openChunks(path: string, key: Buffer, name: string): AsyncGenerator<Buffer> {
  const file = await open(path, 'r');
  try {
    for (let number = 0, last = false; !last; number++) {
      const length = (await readExactly(file, LENGTH_BYTES, path)).readUInt32BE();
      last = length >= LAST;
      const size = last ? length - LAST : length;
      if (size > MAX_BYTES) throw new Error(`${path} is damaged`);
      yield unseal(key, await readExactly(file, size, path), createSealContext(name, number, last));
    }
    const { bytesRead } = await file.read(Buffer.alloc(1), 0, 1);
    if (bytesRead !== 0) throw new Error(`${path} has more than was written into it`);
  } finally {
    await file.close();
  }
}

async function readExactly(file: FileHandle, length: number, path: string): Promise<Buffer> {
  const buffer = Buffer.alloc(length);
  for (let have = 0; have < length;) {
    const { bytesRead } = await file.read(buffer, have, length - have);
    if (bytesRead === 0) throw new Error(`${path} ends early`);
    have += bytesRead;
  }
  return buffer;
}

function createSealContext(name: string, number: number, last: boolean): string {
  return JSON.stringify([name, number, last]);
}
