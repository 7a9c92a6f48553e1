import type { JobOutcome } from '#database/job-queue.js';

/** The outcome of sending a class or object. busy: another process is sending it. */
export type Publication = JobOutcome | { kind: 'busy' };

const BUSY_RETRY_MS = 1_000;

/** Converts the outcome for the queue, which does not know `busy`. */
export function toJobOutcome(publication: Publication): JobOutcome {
  if (publication.kind !== 'busy') return publication;
  return { kind: 'failed', error: 'it is being sent by another process', retryInMs: BUSY_RETRY_MS };
}
