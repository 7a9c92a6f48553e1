/**
 * Finds the account that round robin served last. Accounts take turns in the order of their ids.
 * @param after the one served last the time before
 * @param served the ones served now, in any order
 * @returns the one to continue after
 */
export function findLastServed(after: number, served: number[]): number {
  const [last] = served.toSorted((a, b) => Number(a > after) - Number(b > after) || b - a);
  return last ?? after;
}
