import type { PassOutcome } from '#passes/pass-sender.js';

/** busy: another process is sending the same thing. */
export type Publication = PassOutcome | { kind: 'busy' };

const BUSY_RETRY_MS = 1_000;

/** For the queue, which knows nothing of other senders of the same thing. */
export function toPassOutcome(publication: Publication): PassOutcome {
  if (publication.kind !== 'busy') return publication;
  return { kind: 'failed', error: 'it is being sent by another process', retryInMs: BUSY_RETRY_MS };
}
