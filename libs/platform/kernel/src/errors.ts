import { ERRORS, fillPlaceholders, type RejectionCode } from './error-catalogue.js';

/** Messages by field name; `base` is a fault of the whole record (contract section 1). */
export type FieldErrors = Record<string, string[]>;

/** The record is not there, or the caller may not know that it is. Answers 404. */
export class NotFoundError extends Error {
  constructor(name: string) {
    super(`${name} not found`);
  }
}

/** The record that has what the request asks for. */
export type ExistingRecord = { type: 'customer' | 'customer_card'; id: number };

/** The request was understood and refused by a rule. Answers 422. */
export class RejectedError extends Error {
  constructor(
    readonly errors: FieldErrors,
    readonly code: RejectionCode = 'validation_failed',
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

/** Somebody has the value, which only one record may have. @property existing undefined: it was given up since */
export class TakenError extends RejectedError {
  constructor(
    errors: FieldErrors,
    resolution: string,
    readonly existing: ExistingRecord | undefined,
  ) {
    super(errors, 'taken', resolution);
  }
}

/** Refused for its fields alone, before any rule was asked: not worth keeping under an Idempotency-Key. */
export class InvalidFieldsError extends RejectedError {}

/** Another request with the same Idempotency-Key is still running. Answers 409. */
export class InProgressError extends Error {
  constructor() {
    super(ERRORS.idempotency_in_progress.error);
  }
}

/** Token missing or invalid. Answers 401. */
export class UnauthorizedError extends Error {
  constructor() {
    super(ERRORS.unauthorized.error);
  }
}

/** The caller's role in the account does not allow it. Answers 403. */
export class ForbiddenError extends Error {
  constructor() {
    super(ERRORS.forbidden.error);
  }
}

/** More requests than the window allows. Answers 429. */
export class RateLimitedError extends Error {
  constructor(readonly retryAfterSeconds: number) {
    super(ERRORS.rate_limited.error);
  }
}

/** The path exists, with other methods. Answers 405. */
export class MethodNotAllowedError extends Error {
  constructor(
    method: string,
    readonly allowed: string[],
  ) {
    super(fillPlaceholders(ERRORS.method_not_allowed.error, { method }));
  }
}

/** A header Host that RFC 9112, section 3.2 refuses. Answers 400. */
export class InvalidHostError extends Error {}

/** A body in a coding such as gzip. Answers 415. */
export class CompressedBodyError extends Error {}

/** A part that this request needs is unavailable and nothing was written. Answers 503. */
export class UnavailableError extends Error {}

/**
 * Whether the commit happened could not be found out in time. The caller gets no answer at all,
 * because clients resend after any 5xx (contract section 1).
 */
export class UnknownOutcomeError extends Error {}

/** For one log line. */
export function getErrorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The message with that of its cause, because the caller is told less than the log. */
export function getMessageWithCause(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message} (${error.cause.message})` : error.message;
}
