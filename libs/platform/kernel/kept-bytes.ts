/** Memory of a buffer and its cache entry besides its bytes. */
const OVERHEAD_BYTES = 200;

/**
 * Copies bytes to memory of their own, for caches. Short buffers are views of a slab that many of them share, 64 KiB
 * since Node.js 24.21 (nodejs/node#63597). A cached view would retain the whole slab.
 * @returns the buffer itself if it has memory of its own
 */
export function copyToKeep(bytes: Buffer): Buffer {
  if (bytes.length === bytes.buffer.byteLength) return bytes;
  const own = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(own);
  return own;
}

/** Encodes a text as UTF-8 in memory of its own, see `copyToKeep`. */
export function encodeToKeep(text: string): Buffer {
  const own = Buffer.allocUnsafeSlow(Buffer.byteLength(text));
  own.write(text);
  return own;
}

/** Counts the memory that a cached buffer retains: that of the whole slab if it is a view of one. */
export function countKeptBytes(bytes: Buffer): number {
  return bytes.buffer.byteLength + OVERHEAD_BYTES;
}
