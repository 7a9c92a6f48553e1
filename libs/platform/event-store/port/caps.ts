import { RejectedError } from '#platform/kernel/errors.js';
import { query, type Queryable } from '#platform/database/connection.js';
import { findDatabaseError, SQLSTATE } from '#platform/database/sqlstate.js';
import type { Issue } from '#platform/kernel/issues.js';

/** Defines which records a cap counts. Each aggregate defines its own, next to its table. */
export type CapKind = {
  table: string;
  /** The column with the id of the owner. */
  ownerColumn: string;
  /** SQL over `r`, a row: whether it counts. By default every row does. */
  countedCondition?: string;
  /** SQL over `$1`, the owner: whether it takes no new records, whatever their number. */
  closedCondition?: string;
  /** Whether there are too many records to count them for each new one: see `es.cap_counts`. */
  keepsCount?: boolean;
  /** The error code; by default `limit_reached`. */
  code?: string;
  /** What a rejection says. */
  issue: Issue;
  resolution: string;
};

/** A limit on how many records of a kind an owner may have, checked when a new one is created. */
export type Cap = {
  kind: CapKind;
  owner: number;
  /** All whose records count, where several share the cap of the owner; by default the owner. */
  owners?: number[];
  /** The id of the new record. 0: the commit closes the owner, and no new record may be created meanwhile. */
  id: number;
  /** The usual maximum; `es.cap_overrides` may have another one for the owner. */
  max: number;
  /** One of so many records is reserved for others than this one; 0: none is. */
  reservedShare?: number;
};

/** Reports that the owner has as many records of this kind as it may have; nothing was written. */
export class CapReachedError extends RejectedError {
  constructor(readonly kind: CapKind) {
    const { issue, resolution, code = 'limit_reached' } = kind;
    super({ base: [issue] }, code, resolution);
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
 * @throws CapReachedError
 */
export async function checkCap(
  transaction: Queryable,
  { kind, owner, owners = [owner], id, max, reservedShare = 0 }: Cap,
): Promise<void> {
  const { table, ownerColumn, countedCondition = 'true', closedCondition = 'false' } = kind;
  const { keepsCount = false } = kind;
  try {
    await query(transaction, 'select es.check_cap($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)', [
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
