/** How one attempt ended. */
export type Outcome =
  | { kind: 'answered'; status: number; retryAfter: string | null }
  | { kind: 'failed'; error: string }
  /** The name leads to nothing but addresses that must not be reached: nothing was sent. */
  | { kind: 'blocked' }
  /** The event's day was dropped: there is nothing left that could be sent. */
  | { kind: 'missing' }
  /** There was nothing to send just now. */
  | { kind: 'unrendered' };

/** An attempt that is over. */
export type AttemptResult = {
  outcome: Outcome;
  /** Null when nothing was to be sent. */
  url: string | null;
  at: Date;
  durationMs: number;
  /** The beginning of the answer's body. */
  excerpt: string | null;
};

export function getEndedAt({ at, durationMs }: AttemptResult): Date {
  return new Date(at.getTime() + durationMs);
}

/** Of the answer; null when there was none. */
export function getHttpStatus(outcome: Outcome): number | null {
  return outcome.kind === 'answered' ? outcome.status : null;
}

/** Whether an attempt was made, so that the outcome says something about the receiver. */
export function wasTried({ kind }: Outcome): boolean {
  return kind === 'answered' || kind === 'failed' || kind === 'blocked';
}

export function isSuccess(outcome: Outcome): boolean {
  return outcome.kind === 'answered' && outcome.status >= 200 && outcome.status < 300;
}

/** The label under which an attempt is counted; failures are recognised by the words of `webhook.client.ts`. */
export function getResultLabel(outcome: Outcome): string {
  if (outcome.kind === 'answered') {
    const { status } = outcome;
    return status === 410 || status === 429 ? String(status) : `${Math.floor(status / 100)}xx`;
  }
  if (outcome.kind !== 'failed') return outcome.kind;
  const [, kind = 'connection'] = FAILURE_KINDS.find(([words]) => words.test(outcome.error)) ?? [];
  return kind;
}

const FAILURE_KINDS = [
  [/within 10 seconds|timed out/, 'timeout'],
  [/could not be resolved/, 'dns'],
  [/TLS|_CERT|_TLS|_SSL/, 'tls'],
  [/signing secret/, 'secret'],
  [/not valid HTTP|headers of the answer/, 'protocol'],
] as const;

/** Why an attempt failed, in words meant for people; null when it succeeded. */
export function getError(outcome: Outcome): string | null {
  switch (outcome.kind) {
    case 'failed':
      return outcome.error;
    case 'blocked':
      return 'The URL does not lead to a public address';
    case 'missing':
      return 'The event is no longer kept';
    case 'unrendered':
      return 'The event could not be prepared for sending';
    case 'answered':
      if (isSuccess(outcome)) return null;
      return outcome.status >= 300 && outcome.status < 400
        ? `Answered ${outcome.status}: redirects are not followed`
        : `Answered ${outcome.status}`;
  }
}
