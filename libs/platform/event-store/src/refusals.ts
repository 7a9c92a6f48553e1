import { databaseErrorOf, SQLSTATE } from '#database/sqlstate.js';
import { ClaimTakenError, ConflictError, KeyTakenOverError } from './event-store.js';

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
    default:
      return error;
  }
}
