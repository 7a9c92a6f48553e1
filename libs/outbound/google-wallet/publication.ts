import type { JobOutcome } from '#platform/database/job-queue.js';
import type { GoogleResponse } from './google-response.js';

/** The outcome of sending a class or object. busy: another process is sending it. */
export type Publication = JobOutcome | { kind: 'busy' };

/** Converts the outcome for the queue, which does not know `busy`. */
export function toJobOutcome(publication: Publication): JobOutcome {
  return publication.kind === 'busy' ? { kind: 'unsent' } : publication;
}

/** Converts the failure of what was aborted: that is no failure. */
export function toUnsentIfCut(publication: Publication, cut: AbortSignal): Publication {
  return publication.kind === 'failed' && cut.aborted ? { kind: 'unsent' } : publication;
}

/** Converts a response that is not `ok`. @param canRetry whether an error response is tried again */
export function toFailure(
  response: GoogleResponse,
  { canRetry }: { canRetry: boolean },
): JobOutcome {
  switch (response.kind) {
    case 'unsent':
      return { kind: 'unsent' };
    case 'refused':
      return { kind: canRetry ? 'failed' : 'refused', error: response.error };
    case 'limited':
    case 'failed': {
      const { error, retryInMs } = response;
      return { kind: 'failed', error, ...(retryInMs !== undefined && { retryInMs }) };
    }
    default:
      // The object is inserted with the next update of the pass, or others have inserted and deleted it meanwhile.
      return { kind: 'failed', error: `unexpected response (${response.kind})` };
  }
}
