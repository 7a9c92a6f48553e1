/**
 * Accounts take turns in the order of their ids, beginning after the one that was served last.
 * @param after which one that was the time before
 * @param served now, in any order
 * @returns which one it is next time
 */
export function findLastServed(after: number, served: number[]): number {
  const [last] = served.toSorted((a, b) => Number(a > after) - Number(b > after) || b - a);
  return last ?? after;
}
