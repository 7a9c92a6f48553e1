/** How long a client may read nothing, and how long it may take in all. */
const MAX_STALL_MS = 30_000;
const MAX_DURATION_MS = 30 * 60_000;

/**
 * The state of a response.
 * @property sent number of bytes that the client has taken so far
 * @property isWaiting whether bytes are waiting for the client
 */
type Progress = { now: number; sent: number; isWaiting: boolean };

/**
 * Creates a check of a response, to be called at intervals. It tells whether the client has taken nothing for too long,
 * or too long in all; while the next part is being made, the client is not to blame.
 */
export function createOverdueCheck(startedAt: number): (progress: Progress) => boolean {
  let [last, lastAt] = [0, startedAt];
  return ({ now, sent, isWaiting }) => {
    if (sent !== last || !isWaiting) [last, lastAt] = [sent, now];
    return now - lastAt > MAX_STALL_MS || now - startedAt > MAX_DURATION_MS;
  };
}
