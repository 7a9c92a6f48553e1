/** Whether the long tests run, which leave no case out. */
const ALL_CASES = process.env['ALL_CASES'] === 'true';

/** Picks every nth of many cases, of which most changes break none or several, and all where the long tests run. */
export function sample<T>(cases: readonly T[], n: number): readonly T[] {
  return ALL_CASES ? cases : cases.filter((_, index) => index % n === 0);
}

/** Counts the runs of a test of random cases: a tenth, and all where the long tests run. */
export function sampleRuns(all: number): { numRuns: number } {
  return { numRuns: ALL_CASES ? all : Math.ceil(all / 10) };
}
