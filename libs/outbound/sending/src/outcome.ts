/** The outcome of one attempt. */
export type Outcome =
  | { kind: 'responded'; status: number; retryAfter: string | null }
  | { kind: 'failed'; error: string }
  /** The name leads to nothing but addresses that must not be reached: nothing was sent. */
  | { kind: 'blocked' }
  /** The event's day was dropped: there is nothing left that could be sent. */
  | { kind: 'missing' }
  /** The event could not be rendered: nothing was sent. */
  | { kind: 'unrendered' };

/** A finished attempt. */
export type AttemptResult = {
  outcome: Outcome;
  /** Null when there was nothing to send. */
  url: string | null;
  at: Date;
  durationMs: number;
  /** The beginning of the response body. */
  excerpt: string | null;
};

export function getEndedAt({ at, durationMs }: AttemptResult): Date {
  return new Date(at.getTime() + durationMs);
}

/** Returns the status of the response; null when there was none. */
export function getHttpStatus(outcome: Outcome): number | null {
  return outcome.kind === 'responded' ? outcome.status : null;
}

/** Tells whether an attempt was made, so that the outcome says something about the receiver. */
export function wasTried({ kind }: Outcome): boolean {
  return kind === 'responded' || kind === 'failed' || kind === 'blocked';
}

export function isSuccess(outcome: Outcome): boolean {
  return outcome.kind === 'responded' && outcome.status >= 200 && outcome.status < 300;
}

/** Returns the metrics label of an outcome. Failures are recognised by the messages of `webhook.client.ts`. */
export function getResultLabel(outcome: Outcome): string {
  if (outcome.kind === 'responded') {
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
  [/not valid HTTP|response headers/, 'protocol'],
] as const;

/** Says why an attempt failed, in words meant for people; null when it succeeded. */
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
    case 'responded':
      if (isSuccess(outcome)) return null;
      return outcome.status >= 300 && outcome.status < 400
        ? `Responded with ${outcome.status}: redirects are not followed`
        : `Responded with ${outcome.status}`;
  }
}
