import { crc32 } from 'node:zlib';

const LOCAL_HEADER_SIGNATURE = 0x04034b50;
const CENTRAL_HEADER_SIGNATURE = 0x02014b50;
const END_RECORD_SIGNATURE = 0x06054b50;
const VERSION = 20;
/** File names are UTF-8. */
const FLAGS = 0x0800;
/** 1 January 1980, the first date of the format: equal files result in equal archives. */
const DATE = (1 << 5) | 1;
const LOCAL_HEADER_BYTES = 30;
const CENTRAL_HEADER_BYTES = 46;
const END_RECORD_BYTES = 22;

/** A file of an archive with its checksum. */
export type ZipEntry = { name: string; bytes: Buffer; crc: number };

export function createZipEntry(name: string, bytes: Buffer): ZipEntry {
  return { name, bytes, crc: crc32(bytes) };
}

/** Creates a zip archive without compression, which does not make PNG images smaller (APPNOTE 6.3.10, 4.3). */
export function createStoredZip(entries: ZipEntry[]): Buffer {
  const localParts: Buffer[] = [];
  const centralParts: Buffer[] = [];
  let offset = 0;
  for (const { name, bytes, crc } of entries) {
    const nameBytes = Buffer.from(name);
    const sharedFields = Buffer.alloc(22);
    sharedFields.writeUInt16LE(FLAGS, 0);
    // Method and time stay 0.
    sharedFields.writeUInt16LE(DATE, 6);
    sharedFields.writeUInt32LE(crc, 8);
    sharedFields.writeUInt32LE(bytes.length, 12);
    sharedFields.writeUInt32LE(bytes.length, 16);
    sharedFields.writeUInt16LE(nameBytes.length, 20);
    const header = Buffer.alloc(LOCAL_HEADER_BYTES);
    header.writeUInt32LE(LOCAL_HEADER_SIGNATURE, 0);
    header.writeUInt16LE(VERSION, 4);
    sharedFields.copy(header, 6);
    const entry = Buffer.alloc(CENTRAL_HEADER_BYTES);
    entry.writeUInt32LE(CENTRAL_HEADER_SIGNATURE, 0);
    entry.writeUInt16LE(VERSION, 4);
    entry.writeUInt16LE(VERSION, 6);
    sharedFields.copy(entry, 8);
    entry.writeUInt32LE(offset, 42);
    localParts.push(header, nameBytes, bytes);
    centralParts.push(entry, nameBytes);
    offset += LOCAL_HEADER_BYTES + nameBytes.length + bytes.length;
  }
  const end = Buffer.alloc(END_RECORD_BYTES);
  end.writeUInt32LE(END_RECORD_SIGNATURE, 0);
  end.writeUInt16LE(entries.length, 8);
  end.writeUInt16LE(entries.length, 10);
  end.writeUInt32LE(
    centralParts.reduce((sum, { length }) => sum + length, 0),
    12,
  );
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...localParts, ...centralParts, end]);
}
