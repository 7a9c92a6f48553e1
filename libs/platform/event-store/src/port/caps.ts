import { RejectedError } from '#kernel/errors.js';
import { findDatabaseError, SQLSTATE } from '#database/sqlstate.js';
import type { Cap, CapKind } from './event-store.js';

/** Reports that the owner has as many records of this kind as it may have; nothing was written. */
export class CapReachedError extends RejectedError {
  constructor(readonly kind: CapKind) {
    const { label, resolution, code = 'limit_reached' } = kind;
    super({ base: [`The number of ${label} has reached its limit`] }, code, resolution);
  }
}

/** Returns the name of a cap in `es.intents`, as `es.check_cap` builds it. */
export function getCapName({ kind, owner }: Cap): string {
  return renderCapName(kind.table, owner);
}

/** Lists the names whose work a commit with this cap waits for. */
export function listCapNames(cap: Cap | undefined): string[] {
  return cap ? [getCapName(cap)] : [];
}

/** Renders the name under which `es.cap_overrides` has the maximum of one owner. */
export function renderCapName(recordKind: string, owner: number): string {
  return `${recordKind} ${owner}`;
}

/**
 * Checks a cap in the transaction that creates the record, before it writes anything that readers of the log wait for.
 * @param query runs a statement in that transaction
 * @throws CapReachedError
 */
export async function checkCap(
  query: (text: string, values: unknown[]) => Promise<unknown>,
  { kind, owner, owners = [owner], id, max, reservedShare = 0 }: Cap,
): Promise<void> {
  const { table, ownerColumn, countedCondition = 'true', closedCondition = 'false' } = kind;
  const { keepsCount = false } = kind;
  try {
    await query('select es.check_cap($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)', [
      table,
      ownerColumn,
      owner,
      owners,
      id,
      max,
      countedCondition,
      closedCondition,
      keepsCount,
      reservedShare,
    ]);
  } catch (error) {
    if (findDatabaseError(error)?.code === SQLSTATE.capReached) throw new CapReachedError(kind);
    throw error;
  }
}
