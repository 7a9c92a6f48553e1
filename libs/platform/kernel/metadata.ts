import { PLATFORM_ISSUES, type Issue } from '#platform/kernel/issues.js';

/** A JSON object for other systems' own use. */
export type Metadata = { [key: string]: unknown };

const MAX = { keys: 50, bytes: 16 * 1024 };

/** Merges metadata key by key; a null removes its key. */
export function mergeMetadata(current: Metadata, changes: Metadata): Metadata {
  return Object.fromEntries(
    Object.entries({ ...current, ...changes }).filter(([, value]) => value !== null),
  );
}

/** Returns an error if merged metadata is too large (CUST-27, CUST-28). */
export function findMetadataIssue(metadata: Metadata): Issue | undefined {
  if (Object.keys(metadata).length > MAX.keys)
    return PLATFORM_ISSUES.too_many_keys({ max: MAX.keys });
  return Buffer.byteLength(JSON.stringify(metadata)) > MAX.bytes
    ? PLATFORM_ISSUES.metadata_too_large
    : undefined;
}
