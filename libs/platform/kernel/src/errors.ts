import { ERRORS, fillPlaceholders } from './error-catalogue.js';

/** Messages by field name; `base` is an error of the whole record (ERR-07). */
export type FieldErrors = Record<string, string[]>;

/** Reports that a record does not exist, or that the caller may not know of it. Becomes a 404. */
export class NotFoundError extends Error {
  constructor(name: string) {
    super(`${name} not found`);
  }
}

/** The record that already has the requested value. */
export type ExistingRecord = { type: string; id: number };

/** Reports that a rule rejects the request. Becomes a 422. */
export class RejectedError extends Error {
  constructor(
    readonly errors: FieldErrors,
    readonly code: string = 'validation_failed',
    readonly resolution?: string,
  ) {
    super(
      Object.entries(errors)
        .flatMap(([field, messages]) =>
          messages.map((message) => (field === 'base' ? message : `${field} ${message}`)),
        )
        .join('; '),
    );
  }
}

/**
 * Reports that another record has a unique value (ERR-25).
 * @property existing undefined: the value was released in the meantime
 */
export class TakenError extends RejectedError {
  constructor(
    errors: FieldErrors,
    resolution: string,
    readonly existing: ExistingRecord | undefined,
  ) {
    super(errors, 'taken', resolution);
  }
}

/**
 * Reports a cursor that was given out after the backup from which the service was restored.
 * @property resumeAfter the last entry from before it that is still there; null: there is none
 */
export class CursorAheadError extends RejectedError {
  constructor(
    errors: FieldErrors,
    resolution: string,
    readonly resumeAfter: string | null,
  ) {
    super(errors, 'cursor_ahead', resolution);
  }
}

/** Reports invalid fields. Not stored under an Idempotency-Key (RETRY-16). */
export class InvalidFieldsError extends RejectedError {}

/** Reports that a request with the same Idempotency-Key is still running. Becomes a 409. */
export class InProgressError extends Error {
  constructor() {
    super(ERRORS.idempotency_in_progress.error);
  }
}

/** Reports a missing or invalid token. Becomes a 401. */
export class UnauthorizedError extends Error {
  constructor() {
    super(ERRORS.unauthorized.error);
  }
}

/** Reports that the caller's role, or a restriction of their token, does not allow the operation. Becomes a 403. */
export class ForbiddenError extends Error {
  constructor(
    message: string = ERRORS.forbidden.error,
    readonly resolution: string = ERRORS.forbidden.resolution,
  ) {
    super(message);
  }
}

/** Reports that a rate limit is exceeded. Becomes a 429. */
export class RateLimitedError extends Error {
  constructor(readonly retryAfterSeconds: number) {
    super(ERRORS.rate_limited.error);
  }
}

/** Reports a method that the path does not have. Becomes a 405. */
export class MethodNotAllowedError extends Error {
  constructor(
    method: string,
    readonly allowed: string[],
  ) {
    super(fillPlaceholders(ERRORS.method_not_allowed.error, { method }));
  }
}

/** Reports that the header Accept does not allow the response. Becomes a 406. */
export class NotAcceptableError extends Error {}

/** Reports a Host header that RFC 9112, section 3.2 refuses. Becomes a 400. */
export class InvalidHostError extends Error {}

/** Reports a body in a coding such as gzip, or in a charset that is not known. Becomes a 415. */
export class UnsupportedBodyError extends Error {
  constructor(
    message: string,
    readonly resolution: string,
  ) {
    super(message);
  }
}

/** Reports that a dependency or room for the request is unavailable and nothing was written. Becomes a 503. */
export class UnavailableError extends Error {
  readonly retryAfterSeconds: number;
  readonly resolution: string;

  /** @param options with `retryAfterSeconds` where the usual second is too short, and advice where repeating is none */
  constructor(
    message?: string,
    options: ErrorOptions & { retryAfterSeconds?: number; resolution?: string } = {},
  ) {
    super(message, options);
    this.retryAfterSeconds = options.retryAfterSeconds ?? ERRORS.unavailable.retryAfterSeconds;
    this.resolution = options.resolution ?? ERRORS.unavailable.resolution;
  }
}

/**
 * Reports that the history of a record lacks events, or has somebody else's between its own. Becomes a 503, which no
 * repetition ends: only whoever runs the service can repair it.
 */
export class DamagedHistoryError extends Error {
  /** @param reason for the log, which names the stream */
  constructor(what: 'change' | 'past', reason: string) {
    super(
      what === 'change'
        ? ERRORS.history_damaged.error
        : 'The history of this record is not complete, so its past cannot be read',
      { cause: new Error(reason) },
    );
  }
}

/** Reports that the engine that holds the events is unavailable, where it is not the database. */
export class EventStoreUnavailableError extends UnavailableError {}

/** Reports that a queue of this process is too long, or that nobody waits in it any more. Says nothing about a server. */
export class OverloadError extends UnavailableError {}

/** Reports that maintenance mode is on, and nothing may be changed. Becomes a 503. */
export class MaintenanceError extends Error {
  /** @param reason as the operator gave it */
  constructor(reason: string | null) {
    super(reason === null ? ERRORS.maintenance.error : `${ERRORS.maintenance.error}: ${reason}`);
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
