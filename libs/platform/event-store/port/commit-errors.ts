import { CapReachedError } from './caps.js';
import { findDatabaseError, SQLSTATE } from '#platform/database/sqlstate.js';
import { ClaimTakenError, ConflictError, KeyTakenOverError } from './event-store.js';

/** The primary key of events, which another commit to the stream has taken. */
const EVENTS_KEY = 'events_pkey';

/** Converts the SQLSTATEs of our own functions, and of lost races, to the port's errors. Returns other errors unchanged. */
export function toCommitError(error: unknown): unknown {
  const { code, detail = '', constraint } = findDatabaseError(error) ?? {};
  switch (code) {
    case SQLSTATE.streamMoved:
      return new ConflictError();
    case SQLSTATE.uniqueViolation:
      return constraint === EVENTS_KEY ? new ConflictError() : error;
    case SQLSTATE.claimTaken:
      return new ClaimTakenError(detail.split(','));
    case SQLSTATE.keyTakenOver:
      return new KeyTakenOverError(detail.split(','));
    default:
      return error;
  }
}

/** Tells whether an error means that nothing was written, except perhaps by an earlier try of our own. */
export function isCommitConflict(error: unknown): boolean {
  return [ConflictError, ClaimTakenError, KeyTakenOverError, CapReachedError].some(
    (kind) => error instanceof kind,
  );
}
