import { createReadStream } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { createInflateRaw } from 'node:zlib';
import { ConfigError } from '#platform/kernel/config-error.js';

const END = 0x06054b50;
const ENTRY = 0x02014b50;
/** The end of a zip file may have a comment behind it. */
const LONGEST_END = 22 + 65_535;
const MAX_ENTRIES_BYTES = 1024 * 1024;

type Entry = { name: string; method: number; compressed: number; offset: number };

/**
 * Reads the lines of a text file, or of the one text file besides readme.txt in a zip file. Nothing is held in memory
 * but the line that is read.
 * @throws ConfigError
 */
export async function* readLines(file: string): AsyncGenerator<string> {
  const text = file.toLowerCase().endsWith('.zip') ? await openText(file) : createReadStream(file);
  let readError: unknown;
  text.on('error', (error: unknown) => (readError = error));
  for await (const line of createInterface({ input: text, crlfDelay: Infinity })) yield line;
  if (readError)
    throw new ConfigError(`${file} cannot be read: ${String(readError)}`, { cause: readError });
}

async function openText(file: string): Promise<Readable> {
  const handle = await open(file);
  try {
    const { size } = await handle.stat();
    const texts = (await readEntries(handle, size, file)).filter(
      ({ name }) => name.endsWith('.txt') && name.toLowerCase() !== 'readme.txt',
    );
    const [entry] = texts;
    if (!entry || texts.length > 1) throw new ConfigError(`${file} must hold one text file`);
    const header = await readBytes(handle, entry.offset, 30);
    const start = entry.offset + 30 + header.readUInt16LE(26) + header.readUInt16LE(28);
    const stored = createReadStream(file, { start, end: start + entry.compressed - 1 });
    if (entry.method === 0) return stored;
    if (entry.method !== 8) throw new ConfigError(`${file} is compressed in an unusual way`);
    const inflated = createInflateRaw();
    stored.on('error', (error) => inflated.destroy(error));
    return stored.pipe(inflated);
  } finally {
    await handle.close();
  }
}

async function readEntries(handle: FileHandle, size: number, file: string): Promise<Entry[]> {
  const length = Math.min(size, LONGEST_END);
  const tail = await readBytes(handle, size - length, length);
  const at = tail.lastIndexOf(Buffer.from([0x50, 0x4b, 0x05, 0x06]));
  if (at < 0 || tail.length < at + 22 || tail.readUInt32LE(at) !== END) {
    throw new ConfigError(`${file} is no zip file, or is incomplete`);
  }
  const [bytes, start] = [tail.readUInt32LE(at + 12), tail.readUInt32LE(at + 16)];
  if (bytes > MAX_ENTRIES_BYTES || start + bytes > size) {
    throw new ConfigError(`${file} is not a zip file of GeoNames`);
  }
  const list = await readBytes(handle, start, bytes);
  const entries: Entry[] = [];
  for (let i = 0; i + 46 <= list.length && list.readUInt32LE(i) === ENTRY;) {
    const nameLength = list.readUInt16LE(i + 28);
    entries.push({
      name: list.toString('utf8', i + 46, i + 46 + nameLength),
      method: list.readUInt16LE(i + 10),
      compressed: list.readUInt32LE(i + 20),
      offset: list.readUInt32LE(i + 42),
    });
    i += 46 + nameLength + list.readUInt16LE(i + 30) + list.readUInt16LE(i + 32);
  }
  return entries;
}

async function readBytes(handle: FileHandle, position: number, length: number): Promise<Buffer> {
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, position);
  return buffer.subarray(0, bytesRead);
}
