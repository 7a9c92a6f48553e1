/** Decides when work that has failed is tried again. */
export type RetrySchedule = {
  /** The delay after each attempt. */
  delaysMs: number[];
  /** Whether the last delay applies to all later attempts. Otherwise there are no more. */
  lastRepeats: boolean;
  /** The longest delay that the other side can request. */
  maxRequestedMs: number;
  /** Whether delays are shortened at random by up to half, so that not everything is retried at once. */
  isSpread: boolean;
};

/**
 * Returns the delay before the next attempt, in milliseconds.
 * @param attempts so far
 * @param options requestedMs: the delay that the other side requests; remainingMs: the time until work is given up;
 *   fraction: random, 0 to 1
 * @returns undefined: there are no more attempts
 */
export function getRetryDelayMs(
  { delaysMs, lastRepeats, maxRequestedMs, isSpread }: RetrySchedule,
  attempts: number,
  { requestedMs = 0, remainingMs = Infinity, fraction = 1 } = {},
): number | undefined {
  const delayMs = delaysMs[attempts - 1] ?? (lastRepeats ? delaysMs.at(-1) : undefined);
  if (delayMs === undefined || delayMs > remainingMs) return undefined;
  const spreadMs = isSpread ? delayMs * (0.5 + fraction / 2) : delayMs;
  return Math.round(Math.max(spreadMs, Math.min(requestedMs, maxRequestedMs)));
}
