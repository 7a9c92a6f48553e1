import { isDeepStrictEqual } from 'node:util';

export type Changes = Record<string, { from: unknown; to: unknown }>;

/**
 * Compares two versions of a record, for the audit log.
 * @param before the fields that may be logged
 * @returns the fields that differ
 */
export function findChanges<T extends Record<string, unknown>>(before: T, after: T): Changes {
  return Object.fromEntries(
    Object.keys(after)
      .filter((field) => !isDeepStrictEqual(before[field], after[field]))
      .map((field) => [field, { from: before[field], to: after[field] }]),
  );
}
