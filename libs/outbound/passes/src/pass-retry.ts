const MIN_DELAY_MS = 1_000;
const MAX_DELAY_MS = 10 * 60_000;
const MAX_REQUESTED_MS = 60 * 60_000;

/**
 * Doubled from a second to ten minutes, and never given up: an outage of hours is made up for soon after its end.
 * @param attempts so far
 * @param fraction random, 0 to 1, so that updates that failed together are not all tried together again
 * @param requestedMs what the other side has asked for; more than an hour counts as an hour
 */
export function getRetryDelayMs(attempts: number, fraction: number, requestedMs = 0): number {
  const delay = Math.min(MIN_DELAY_MS * 2 ** Math.min(attempts - 1, 20), MAX_DELAY_MS);
  return Math.round(
    Math.max(delay * (0.5 + fraction / 2), Math.min(requestedMs, MAX_REQUESTED_MS)),
  );
}
