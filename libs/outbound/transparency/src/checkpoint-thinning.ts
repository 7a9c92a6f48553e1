/** A file of a checkpoint. @property at when it was written */
export type DatedFile = { name: string; at: Date };

const DAY_MS = 86_400_000;
/** Keeps all that are younger. */
const HOURLY_AFTER_MS = 7 * DAY_MS;
/** Keeps one an hour of those that are younger, and one a day of the others. */
const DAILY_AFTER_MS = 365 * DAY_MS;

/**
 * Finds the checkpoints that a later one of the same hour or day covers. The newest of a day always stays.
 * @param files in the order in which they were written; nothing follows from a last one that is missing
 */
export function findSuperfluous(files: readonly DatedFile[], now: Date): string[] {
  return files
    .filter((file, i) => {
      const period = findPeriod(file, now);
      const next = files[i + 1];
      return period !== null && next !== undefined && findPeriod(next, now) === period;
    })
    .map(({ name }) => name);
}

/** Finds the hour or day of which one file is enough, in UTC; null: the file stays. */
function findPeriod({ at }: DatedFile, now: Date): string | null {
  const age = Number(now) - Number(at);
  if (age < HOURLY_AFTER_MS) return null;
  return at.toISOString().slice(0, age < DAILY_AFTER_MS ? 13 : 10);
}
