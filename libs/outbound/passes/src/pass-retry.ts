const MIN_DELAY_MS = 1_000;
const MAX_DELAY_MS = 10 * 60_000;
const MAX_REQUESTED_MS = 60 * 60_000;

/**
 * Returns the delay before the next attempt, which doubles from one second to ten minutes. Updates are retried without
 * end, so that they arrive soon after an outage of hours.
 * @param attempts so far
 * @param fraction random, 0 to 1, so that updates that failed together are not all retried together
 * @param requestedMs the delay that the vendor requests; more than an hour counts as an hour
 */
export function getRetryDelayMs(attempts: number, fraction: number, requestedMs = 0): number {
  const delay = Math.min(MIN_DELAY_MS * 2 ** Math.min(attempts - 1, 20), MAX_DELAY_MS);
  return Math.round(
    Math.max(delay * (0.5 + fraction / 2), Math.min(requestedMs, MAX_REQUESTED_MS)),
  );
}
