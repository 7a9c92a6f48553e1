/** A file of a checkpoint. @property at when it was written */
export type DatedFile = { name: string; at: Date };

const DAY_MS = 86_400_000;
/** Keeps all that are younger. */
const HOURLY_AFTER_MS = 7 * DAY_MS;
/** Nothing is signed sooner after another. A file that was written sooner was copied without its time, and stays. */
const MIN_GAP_MS = 1_000;
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
      if (period === null || next === undefined || findPeriod(next, now) !== period) return false;
      return Number(next.at) - Number(file.at) >= MIN_GAP_MS;
    })
    .map(({ name }) => name);
}

/** Finds the hour or day of which one file is enough, in UTC; null: the file stays. */
function findPeriod({ at }: DatedFile, now: Date): string | null {
  const age = Number(now) - Number(at);
  if (age < HOURLY_AFTER_MS) return null;
  return at.toISOString().slice(0, age < DAILY_AFTER_MS ? 13 : 10);
}
