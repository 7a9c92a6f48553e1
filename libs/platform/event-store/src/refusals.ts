import { databaseErrorOf, SQLSTATE } from '#database/sqlstate.js';
import { CapReachedError } from './caps.js';
import { ClaimTakenError, ConflictError, KeyTakenOverError, type Cap } from './event-store.js';

/** Turns the SQLSTATEs of our own functions into the port's errors; other errors are returned unchanged. */
export function refusalOf(error: unknown): unknown {
  const { code, detail = '' } = databaseErrorOf(error) ?? {};
  switch (code) {
    case SQLSTATE.streamMoved:
      return new ConflictError();
    case SQLSTATE.claimTaken:
      return new ClaimTakenError(detail.split(','));
    case SQLSTATE.keyTakenOver:
      return new KeyTakenOverError(detail.split(','));
    case SQLSTATE.capReached:
      return new CapReachedError(detail as Cap['kind']);
    default:
      return error;
  }
}
