const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DELAYS_MS = [30 * SECOND, 2 * MINUTE, 10 * MINUTE, HOUR, 6 * HOUR, 24 * HOUR];

/**
 * Returns the delay until the next attempt.
 * @param attempts so far
 * @param requestedMs the delay that the geocoder has requested
 * @returns undefined: there are no more attempts
 */
export function getGeocodingDelayMs(attempts: number, requestedMs = 0): number | undefined {
  const delay = DELAYS_MS[attempts - 1];
  return delay === undefined ? undefined : Math.max(delay, Math.min(requestedMs, 24 * HOUR));
}
