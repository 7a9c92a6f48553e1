/** Matches a time whose offset has lost its plus: not encoded in a query, it arrives as a space. */
const UNENCODED_OFFSET = /^(\d{4}-\d\d-\d\d[Tt][\d:.,]+) (\d\d(?::?\d\d)?)$/;

/** Restores the plus of times in a query. */
export function restoreOffsets(query: Record<string, unknown>): Record<string, unknown> {
  const damaged = Object.entries(query).filter(
    (entry): entry is [string, string] =>
      typeof entry[1] === 'string' && UNENCODED_OFFSET.test(entry[1]),
  );
  if (damaged.length === 0) return query;
  const restored = damaged.map(([name, time]) => [name, time.replace(UNENCODED_OFFSET, '$1+$2')]);
  return { ...query, ...(Object.fromEntries(restored) as Record<string, string>) };
}
