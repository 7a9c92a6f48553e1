/** Why an attempt failed without a response. */
export type FailureCause = 'timeout' | 'connection' | 'dns' | 'tls' | 'protocol' | 'secret';

/** An attempt without a response. @property error in words meant for people */
export type Failure = { kind: 'failed'; cause: FailureCause; error: string };

/** The outcome of one attempt. */
export type Outcome =
  | { kind: 'responded'; status: number; retryAfter: string | null }
  | Failure
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

/** A response by the class of its status, or what happened instead. */
export type ResultLabel =
  | FailureCause
  | Exclude<Outcome['kind'], 'responded' | 'failed'>
  | '410'
  | '429'
  | `${number}xx`;

/** Returns the metrics label of an outcome. */
export function getOutcomeLabel(outcome: Outcome): ResultLabel {
  switch (outcome.kind) {
    case 'responded': {
      const { status } = outcome;
      if (status === 410 || status === 429) return `${status}`;
      return `${Math.floor(status / 100)}xx`;
    }
    case 'failed':
      return outcome.cause;
    default:
      return outcome.kind;
  }
}

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
