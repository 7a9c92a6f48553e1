import { createHash } from 'node:crypto';
import type { PassSigner } from './pass-signature.js';
import { createStoredZip, createZipEntry, type ZipEntry } from './stored-zip.js';

/** A file of a pass with its SHA-1 for the manifest. Many passes share an image, so its hash is computed once. */
export type PassFile = ZipEntry & { sha1: string };

export function createPassFile(name: string, bytes: Buffer): PassFile {
  return { ...createZipEntry(name, bytes), sha1: createHash('sha1').update(bytes).digest('hex') };
}

/** Creates a .pkpass: the files, a manifest of their hashes, and a signature over the manifest. */
export async function createPassPackage(
  files: PassFile[],
  sign: PassSigner,
  signedAt: Date,
): Promise<Buffer> {
  const sums = Object.fromEntries(files.map(({ name, sha1 }) => [name, sha1]));
  const manifest = Buffer.from(JSON.stringify(sums));
  const signature = await sign(manifest, signedAt);
  return createStoredZip([
    ...files,
    createZipEntry('manifest.json', manifest),
    createZipEntry('signature', signature),
  ]);
}
