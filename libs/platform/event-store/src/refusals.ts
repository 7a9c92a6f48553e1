import { databaseErrorOf, SQLSTATE } from '#database/sqlstate.js';
import { CapReachedError } from './caps.js';
import { ClaimTakenError, ConflictError, KeyTakenOverError, type Cap } from './event-store.js';

/** What `es.commit` and its kin refuse, as the errors of the port; anything else as it is. Nothing was written. */
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
