import { zipSync } from 'fflate';
import { createHash } from 'node:crypto';
import type { PassSigner } from './pass-signature.js';

/** A file of a pass with its SHA-1 for the manifest. Many passes share an image, so its hash is computed once. */
export type PassFile = { name: string; bytes: Buffer; sha1: string };

/** Compression does not make PNG images smaller. The first date of the format: equal files result in equal archives. */
const ZIP_OPTIONS = { level: 0, mtime: new Date(1980, 0, 1) } as const;

export function createPassFile(name: string, bytes: Buffer): PassFile {
  return { name, bytes, sha1: createHash('sha1').update(bytes).digest('hex') };
}

/** Creates a .pkpass: the files, a manifest of their hashes, and a signature over the manifest. */
export async function createPassPackage(
  files: PassFile[],
  sign: PassSigner,
  signedAt: Date,
): Promise<Buffer> {
  const sums = Object.fromEntries(files.map(({ name, sha1 }) => [name, sha1]));
  const manifest = Buffer.from(JSON.stringify(sums));
  const entries = Object.fromEntries(files.map(({ name, bytes }) => [name, bytes]));
  const signature = await sign(manifest, signedAt);
  return createZip({ ...entries, 'manifest.json': manifest, signature });
}

/** Creates a zip archive without compression. */
export function createZip(entries: Record<string, Uint8Array>): Buffer {
  const { buffer, byteOffset, length } = zipSync(entries, ZIP_OPTIONS);
  return Buffer.from(buffer, byteOffset, length);
}
