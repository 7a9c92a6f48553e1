import { crc32 } from 'node:zlib';

const LOCAL = 0x04034b50;
const CENTRAL = 0x02014b50;
const END = 0x06054b50;
const VERSION = 20;
/** File names are UTF-8. */
const FLAGS = 0x0800;
/** 1 January 1980, the first day of DOS: equal files make equal archives. */
const DATE = (1 << 5) | 1;
const LOCAL_BYTES = 30;
const CENTRAL_BYTES = 46;
const END_BYTES = 22;

/** A file that goes into archives, with the sums that they need. */
export type ZipFile = { name: string; bytes: Buffer; crc: number };

export function zipFile(name: string, bytes: Buffer): ZipFile {
  return { name, bytes, crc: crc32(bytes) };
}

/** A zip archive without compression, as PNG images do not get smaller (APPNOTE 6.3.10, 4.3). */
export function storedZip(files: ZipFile[]): Buffer {
  const local: Buffer[] = [];
  const central: Buffer[] = [];
  let at = 0;
  for (const { name, bytes, crc } of files) {
    const named = Buffer.from(name);
    const sums = Buffer.alloc(22);
    sums.writeUInt16LE(FLAGS, 0);
    // Method and time stay 0.
    sums.writeUInt16LE(DATE, 6);
    sums.writeUInt32LE(crc, 8);
    sums.writeUInt32LE(bytes.length, 12);
    sums.writeUInt32LE(bytes.length, 16);
    sums.writeUInt16LE(named.length, 20);
    const header = Buffer.alloc(LOCAL_BYTES);
    header.writeUInt32LE(LOCAL, 0);
    header.writeUInt16LE(VERSION, 4);
    sums.copy(header, 6);
    const entry = Buffer.alloc(CENTRAL_BYTES);
    entry.writeUInt32LE(CENTRAL, 0);
    entry.writeUInt16LE(VERSION, 4);
    entry.writeUInt16LE(VERSION, 6);
    sums.copy(entry, 8);
    entry.writeUInt32LE(at, 42);
    local.push(header, named, bytes);
    central.push(entry, named);
    at += LOCAL_BYTES + named.length + bytes.length;
  }
  const end = Buffer.alloc(END_BYTES);
  end.writeUInt32LE(END, 0);
  end.writeUInt16LE(files.length, 8);
  end.writeUInt16LE(files.length, 10);
  end.writeUInt32LE(
    central.reduce((sum, { length }) => sum + length, 0),
    12,
  );
  end.writeUInt32LE(at, 16);
  return Buffer.concat([...local, ...central, end]);
}
