import { createHash } from 'node:crypto';
import type { PassSigner } from './pass-signature.js';
import { createStoredZip, createZipEntry, type ZipEntry } from './stored-zip.js';

/** A file of a pass, with the sum that the manifest needs. Images are the same in many passes: sum them up once. */
export type PassFile = ZipEntry & { sha1: string };

export function createPassFile(name: string, bytes: Buffer): PassFile {
  return { ...createZipEntry(name, bytes), sha1: createHash('sha1').update(bytes).digest('hex') };
}

/** A .pkpass: the files, a manifest of their sums, and a signature over it. */
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
