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

/** Picks the fields of the input that differ from those of the record. @returns undefined when none does */
export function pickChanges<T extends object>(
  record: T,
  input: Partial<NoInfer<T>>,
): Partial<T> | undefined {
  const changes = Object.entries(input).filter(
    // Without the first comparison, -0 would differ from 0.
    ([name, value]) =>
      record[name as keyof T] !== value && !isDeepStrictEqual(record[name as keyof T], value),
  );
  return changes.length > 0 ? (Object.fromEntries(changes) as Partial<T>) : undefined;
}
