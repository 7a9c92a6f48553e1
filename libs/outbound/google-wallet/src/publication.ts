import type { PassOutcome } from '#passes/pass-sender.js';

/** The outcome of sending a class or object. busy: another process is sending it. */
export type Publication = PassOutcome | { kind: 'busy' };

const BUSY_RETRY_MS = 1_000;

/** Converts the outcome for the queue, which does not know `busy`. */
export function toPassOutcome(publication: Publication): PassOutcome {
  if (publication.kind !== 'busy') return publication;
  return { kind: 'failed', error: 'it is being sent by another process', retryInMs: BUSY_RETRY_MS };
}
