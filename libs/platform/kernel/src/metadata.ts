/** A JSON object for other systems' own use. */
export type Metadata = { [key: string]: unknown };

const MOST = { keys: 50, bytes: 16 * 1024 };

/** Shallow: a null removes its key. */
export function mergeMetadata(current: Metadata, given: Metadata): Metadata {
  return Object.fromEntries(
    Object.entries({ ...current, ...given }).filter(([, value]) => value !== null),
  );
}

/** What is wrong with the size of metadata as it is to be kept (contract section 4). */
export function metadataFault(kept: Metadata): string | undefined {
  if (Object.keys(kept).length > MOST.keys) return `must have at most ${MOST.keys} keys`;
  return Buffer.byteLength(JSON.stringify(kept)) > MOST.bytes
    ? 'must have at most 16 KiB'
    : undefined;
}
