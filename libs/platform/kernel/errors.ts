import { ERRORS, fillPlaceholders, PLATFORM_ERRORS, type ErrorCode } from './error-catalogue.js';
import { renderMessages, toFieldMessages, type FieldIssues } from './issues.js';

/** Messages by field name; `base` is an error of the whole record (ERR-07). */
export type FieldErrors = Record<string, string[]>;

/** @property values of the placeholders in the catalogue's texts */
type ErrorDetails = ErrorOptions & {
  resolution?: string | undefined;
  retryAfterSeconds?: number;
  values?: Record<string, string | number>;
};

/** Reports an error of the catalogue, which says the status and whatever the error does not say itself. */
export class CatalogueError extends Error {
  readonly resolution: string | undefined;
  readonly retryAfterSeconds: number | undefined;

  constructor(
    readonly errorCode: ErrorCode,
    message?: string,
    { resolution, retryAfterSeconds, values = {}, ...options }: ErrorDetails = {},
  ) {
    const entry = PLATFORM_ERRORS[errorCode];
    super(message ?? fillPlaceholders(entry.error ?? entry.meaning, values), options);
    const advice = resolution ?? entry.resolution;
    this.resolution = advice && fillPlaceholders(advice, values);
    this.retryAfterSeconds = retryAfterSeconds ?? entry.retryAfterSeconds;
  }
}

/** Reports that a record does not exist, or that the caller may not know of it. */
export class NotFoundError extends CatalogueError {
  constructor(name: string) {
    super('not_found', `${name} not found`);
  }
}

/** The record that already has the requested value. */
export type ExistingRecord = { type: string; id: number };

/** Reports that a rule rejects the request. Becomes a 422. */
export class RejectedError extends Error {
  /** The messages of the issues. */
  readonly errors: FieldErrors;

  constructor(
    readonly issues: FieldIssues,
    readonly code: string = 'validation_failed',
    readonly resolution?: string,
  ) {
    super(renderMessages(issues));
    this.errors = toFieldMessages(issues);
  }
}

/**
 * Reports that another record has a unique value (ERR-25).
 * @property existing undefined: the value was released in the meantime
 */
export class TakenError extends RejectedError {
  constructor(
    issues: FieldIssues,
    resolution: string,
    readonly existing: ExistingRecord | undefined,
  ) {
    super(issues, 'taken', resolution);
  }
}

/**
 * Reports a cursor that was given out after the backup from which the service was restored.
 * @property resumeAfter the last entry from before it that is still there; null: no earlier entry
 */
export class CursorAheadError extends RejectedError {
  constructor(
    issues: FieldIssues,
    resolution: string,
    readonly resumeAfter: string | null,
  ) {
    super(issues, 'cursor_ahead', resolution);
  }
}

/** Reports invalid fields. Not stored under an Idempotency-Key (RETRY-16). */
export class InvalidFieldsError extends RejectedError {}

/**
 * Adds the issues of invalid fields to those found so far, except where a field has some.
 * @param rename returns the name of a field where a form or a file has another one than the request
 * @returns undefined with issues
 */
export function collectIssues<T>(
  issues: FieldIssues,
  read: () => T,
  rename = (field: string) => field,
): T | undefined {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof InvalidFieldsError)) throw error;
    for (const [field, list] of Object.entries(error.issues)) issues[rename(field)] ??= list;
    return undefined;
  }
}

/** Reports that a request with the same Idempotency-Key is still running. */
export class InProgressError extends CatalogueError {
  constructor(options?: ErrorOptions) {
    super('idempotency_in_progress', undefined, options);
  }
}

/** Reports a missing or invalid token. */
export class UnauthorizedError extends CatalogueError {
  constructor() {
    super('unauthorized');
  }
}

/** Reports that the caller's role, or a restriction of their token, does not allow the operation. */
export class ForbiddenError extends CatalogueError {
  constructor(message?: string, resolution?: string) {
    super('forbidden', message, { resolution });
  }
}

/** Reports that a rate limit is exceeded. */
export class RateLimitedError extends CatalogueError {
  constructor(override readonly retryAfterSeconds: number) {
    super('rate_limited', undefined, { values: { seconds: retryAfterSeconds } });
  }
}

/** Reports that a dependency or room for the request is unavailable and nothing was written. */
export class UnavailableError extends CatalogueError {
  /** @param details with `retryAfterSeconds` where the usual second is too short, and advice where repeating is none */
  constructor(message?: string, details?: ErrorDetails) {
    super('unavailable', message, details);
  }
}

/**
 * Reports that the history of a record lacks events, or has somebody else's between its own. No repetition ends that: only
 * whoever runs the service can repair it.
 */
export class DamagedHistoryError extends CatalogueError {
  /** @param reason for the log, which names the stream */
  constructor(what: 'change' | 'past', reason: string) {
    super(
      'history_damaged',
      what === 'change'
        ? undefined
        : 'The history of this record is not complete, so its past cannot be read',
      { cause: new Error(reason) },
    );
  }
}

/** Reports that the engine that holds the events is unavailable, where it is not the database. */
export class EventStoreUnavailableError extends UnavailableError {}

/** Reports that a queue of this process is too long, or that nobody waits in it any more. Says nothing about a server. */
export class OverloadError extends UnavailableError {}

/** Reports that maintenance mode is on, and nothing may be changed. */
export class MaintenanceError extends CatalogueError {
  /** @param reason as the operator gave it */
  constructor(reason: string | null) {
    const { error } = ERRORS.maintenance;
    super('maintenance', reason === null ? error : `${error}: ${reason}`);
  }
}

/**
 * Reports that the outcome of a commit could not be determined in time. The connection is closed without a response,
 * because clients retry after any 5xx (ERR-21).
 */
export class UnknownOutcomeError extends Error {}

/**
 * Returns the message of an error, for one log line. Some have none: that of a connection to a name with several
 * addresses, of which none responds, has only those of the attempts.
 */
export function getErrorMessage(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.message !== '') return error.message;
  if (error instanceof AggregateError && error.errors.length > 0)
    return getErrorMessage(error.errors[0]);
  return 'code' in error ? String(error.code) : error.name;
}

/** Returns the message with that of its cause, which the caller never sees. */
export function getMessageWithCause(error: unknown): string {
  const message = getErrorMessage(error);
  return error instanceof Error && error.cause instanceof Error
    ? `${message} (${getErrorMessage(error.cause)})`
    : message;
}
