import { EventStoreUnavailableError, getErrorMessage } from '#platform/kernel/errors.js';
import { withTimeout } from '#platform/kernel/with-timeout.js';

/** Time-out of one append or one page of a read. The client itself has none. */
export const RESPONSE_TIMEOUT_MS = 5_000;

/**
 * Reports that a response did not arrive in full within our time-out, or that the client was abandoned. A new connection
 * may help then.
 */
export class NoResponseError extends Error {}

export type ErrorKind =
  | 'conflict'
  | 'missing'
  | 'deleted'
  | 'refused'
  | 'unreachable'
  | 'no-response'
  | 'not-leader'
  | 'other';

/** Reports that the server refuses us until an operator changes a setting or a right, which the message names. */
export class RefusedError extends Error {}

/** Messages of requests that were never sent, because gRPC had no server to send them to. */
const NOBODY_THERE =
  /ECONNREFUSED|No connection established|Failed to connect|Name resolution failed|discover|ENOTFOUND|getaddrinfo/i;

/** Node's messages for TLS connections whose certificate the settings do not trust. */
const UNTRUSTED =
  /self-signed certificate|unable to (?:verify|get)[^.]*certificate|certificate (?:has expired|is not yet valid)|Hostname\/IP does not match|certificate[^.]*unknown/i;
const UNAUTHENTICATED = 16;

/** Classifies errors of the client, and raw gRPC errors that it lets through after an outage. */
export function classifyError(error: unknown): ErrorKind {
  if (error instanceof NoResponseError) return 'no-response';
  if (!(error instanceof Error)) return 'other';
  const { type, code } = error as { type?: string; code?: number };
  if (type === 'wrong-expected-version') return 'conflict';
  if (type === 'stream-not-found') return 'missing';
  if (type === 'stream-deleted') return 'deleted';
  if (type === 'not-leader') return 'not-leader';
  if (type === 'access-denied' || code === UNAUTHENTICATED || UNTRUSTED.test(error.message)) {
    return 'refused';
  }
  if (NOBODY_THERE.test(error.message)) return 'unreachable';
  const isLost =
    ['unavailable', 'timeout', 'deadline-exceeded', 'cancelled', 'unknown'].includes(type ?? '') ||
    [1, 2, 4, 14].includes(code ?? -1);
  return isLost ? 'no-response' : 'other';
}

/** Tells whether the server denies an operation on a stream to us. */
export function isAccessDenied(error: unknown): boolean {
  return error instanceof Error && (error as { type?: string }).type === 'access-denied';
}

/**
 * Creates the error for the caller when nothing was written. Its cause says which setting or right is missing, if one
 * is.
 */
export function toUnavailableError(
  error: unknown,
  operation: 'read' | 'append',
): EventStoreUnavailableError {
  const cause =
    classifyError(error) === 'refused'
      ? new RefusedError(describeAccessError(error, operation))
      : describeSilence(error);
  return new EventStoreUnavailableError('The event store cannot be reached', { cause });
}

/** Describes errors of the client without a message, as when its own deadline has passed. */
function describeSilence(error: unknown): unknown {
  if (!(error instanceof Error) || error.message !== '') return error;
  return new NoResponseError('no response within defaultDeadline', { cause: error });
}

function describeAccessError(error: unknown, operation: 'read' | 'append'): string {
  const message = getErrorMessage(error);
  const [untrusted] = UNTRUSTED.exec(message) ?? [];
  if (untrusted !== undefined) {
    return `The certificate of the event store is not trusted (${untrusted}): name the certificate of its authority as tlsCAFile in EVENT_STORE_URL.`;
  }
  if (error instanceof Error && 'code' in error && error.code === UNAUTHENTICATED) {
    return 'The event store does not know the database user and password in EVENT_STORE_URL.';
  }
  return `The event store does not let the database user in EVENT_STORE_URL ${operation === 'read' ? 'read its log ($all)' : 'append'}: an administrator runs inkpad event-store-access once (docs/operating/configure.md, Access to KurrentDB).`;
}

/** Bounds the wait for a response: the client sets no deadline for requests it has sent. @throws NoResponseError */
export function awaitResponse<R>(response: Promise<R>, withinMs: number): Promise<R> {
  const createError = () => new NoResponseError(`no response within ${withinMs} ms`);
  return withTimeout(response, withinMs, createError);
}
