/** Longer than a commit can take. A time that is further from its neighbours comes from a wrong clock. */
const SLOWEST_COMMIT_MS = 60_000;

/**
 * Computes times for consecutive events of the log that never run backwards. Recorded times may, because a commit was
 * slow or a clock is wrong. All times are in ms since 1970.
 * An event counts from its own time on, unless an earlier event counts from a later time: then both count from that
 * one. A time that the later events contradict, or that is in the future, comes from a clock that is ahead. Such an
 * event counts with the next event whose time is plausible, so that it does not hide others until its clock is right.
 * @param start when the event before them counts; none of them counts earlier
 * @param recorded when each was recorded, in the order of the log
 * @param end none of them counts later
 */
export function computeEffectiveTimes(start: number, recorded: number[], end: number): number[] {
  const trustedIndices = new Set(findLongestRise(recorded, start, end));
  const next: number[] = [];
  for (let i = recorded.length - 1, upcoming = end; i >= 0; i--) {
    const time = recorded[i] ?? end;
    if (trustedIndices.has(i)) upcoming = time;
    next[i] = upcoming;
  }
  let latest = start;
  return recorded.map((time, i) => {
    const upcoming = next[i] ?? end;
    const isAhead = time > end || time > upcoming + SLOWEST_COMMIT_MS;
    latest = Math.max(latest, isAhead ? upcoming : time);
    return latest;
  });
}

/**
 * Finds the largest set of events whose times agree with their order: most of them come from clocks that are right.
 * @returns indices of a longest subsequence that does not fall, of times within the bounds
 */
function findLongestRise(times: number[], low: number, high: number): number[] {
  // The index that ends the best rise of each length: the one with the lowest time.
  const ends: number[] = [];
  const before: (number | undefined)[] = [];
  times.forEach((time, i) => {
    if (time < low || time > high) return;
    let [from, to] = [0, ends.length];
    while (from < to) {
      const middle = (from + to) >> 1;
      if ((times[ends[middle] ?? 0] ?? 0) <= time) from = middle + 1;
      else to = middle;
    }
    before[i] = ends[from - 1];
    ends[from] = i;
  });
  const rise: number[] = [];
  for (let i = ends.at(-1); i !== undefined; i = before[i]) rise.push(i);
  return rise.reverse();
}
