const VALUE_BYTES = 16;
const OBJECT_BYTES = 48;
/** A buffer, and the key object created from it. */
const BUFFER_BYTES = 400;

/** One such character makes a string use two bytes per character. */
const WIDE = /[^\0-\xff]/;

/**
 * Estimates how much memory a value uses, for caches: accurate enough to tell small from large, and far faster than
 * serialising it.
 */
export function estimateBytes(value: unknown): number {
  if (typeof value === 'string') return VALUE_BYTES + value.length * (WIDE.test(value) ? 2 : 1);
  if (typeof value !== 'object' || value === null) return VALUE_BYTES;
  // The whole slab, if it is a view of one.
  if (ArrayBuffer.isView(value)) return BUFFER_BYTES + value.buffer.byteLength;
  let bytes = OBJECT_BYTES;
  const parts = value instanceof Map ? [...value.keys(), ...value.values()] : Object.values(value);
  for (const part of parts) bytes += estimateBytes(part);
  return bytes;
}
