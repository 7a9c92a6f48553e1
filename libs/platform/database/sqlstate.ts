import pg from 'pg';
import { QueryFailedError } from 'typeorm';

/** SQLSTATEs that the code handles. IP… are raised by functions of our own migrations. */
export const SQLSTATE = {
  streamMoved: 'IP001',
  claimTaken: 'IP002',
  keyTakenOver: 'IP004',
  capReached: 'IP005',
  uniqueViolation: '23505',
  checkViolation: '23514',
  queryCanceled: '57014',
  lockNotAvailable: '55P03',
  undefinedTable: '42P01',
  undefinedFunction: '42883',
  insufficientPrivilege: '42501',
} as const;

/** Deadlock, serialisation failure, lock timeout, statement cancelled: rolled back for certain. */
const ROLLED_BACK = new Set(['40P01', '40001', '55P03', '57014']);

/** Finds the server's error, thrown by the driver or wrapped by TypeORM; undefined for any other error. */
export function findDatabaseError(error: unknown): pg.DatabaseError | undefined {
  if (error instanceof QueryFailedError) return findDatabaseError(error.driverError);
  return error instanceof pg.DatabaseError ? error : undefined;
}

/** Tells whether the server rolled the transaction back for a reason that may pass: a retry may succeed. */
export function isRolledBackForRetry(error: unknown): boolean {
  return ROLLED_BACK.has(findDatabaseError(error)?.code ?? '');
}

/**
 * Tells whether an error ends the connection. Class 57P is a server shutting down, class 08 a lost connection, 25P03
 * and 25P04 limits of transactions.
 */
export function endsConnection({ code = '' }: pg.DatabaseError): boolean {
  return code.startsWith('57P') || code.startsWith('08') || ['25P03', '25P04'].includes(code);
}

/** What the server lacks when it refuses statements, by the beginning of the SQLSTATE. */
const RESOURCE_BY_SQLSTATE = {
  '25006': 'write_access',
  '53100': 'disk_space',
  '53200': 'memory',
  '53300': 'connections',
  '53': 'resources',
  '58': 'system',
} as const;

/** A synchronous standby is missed without an error of the server: commits wait for it. */
export type MissingResource =
  | (typeof RESOURCE_BY_SQLSTATE)[keyof typeof RESOURCE_BY_SQLSTATE]
  | 'synchronous_standby';

export const MISSING_RESOURCES: readonly MissingResource[] = [
  ...Object.values(RESOURCE_BY_SQLSTATE),
  'synchronous_standby',
];

/** Finds what the server lacks; undefined for any other error. */
export function findMissingResource(code: string | undefined): MissingResource | undefined {
  // Whole codes come first: keys that look like small integers would be sorted.
  return Object.entries(RESOURCE_BY_SQLSTATE)
    .sort(([a], [b]) => b.length - a.length)
    .find(([start]) => code?.startsWith(start))?.[1];
}

/**
 * Tells whether the server lacks resources, which may pass without a change of ours: class 53 is space, memory and
 * connections, class 58 the operating system, 25006 a read-only database.
 */
export function isOutageState(code: string | undefined): boolean {
  return findMissingResource(code) !== undefined;
}
