import pg from 'pg';
import { TypeORMError } from 'typeorm';
import { ConfigError, UnreachableError } from '#platform/kernel/config-error.js';
import { getErrorMessage } from '#platform/kernel/errors.js';
import { describeTlsError } from '#platform/kernel/tls-errors.js';
import { isConnectionLoss, UNREACHABLE } from './connection.js';
import { StandbyError } from './database-client.js';
import { findDatabaseError, isOutageState } from './sqlstate.js';

const WRONG_PASSWORD = '28P01';

/**
 * Makes the first connection of a process. Only an operator can fix an error here.
 * @throws UnreachableError that names the database, but no password
 * @throws ConfigError likewise, when waiting does not help: for a wrong password, or a database that does not exist
 */
export async function connectFirst<R>(databaseUrl: string, connect: () => Promise<R>): Promise<R> {
  try {
    return await connect();
  } catch (cause) {
    if (!isConnectError(cause)) throw cause;
    const message = `The database ${describeDatabase(databaseUrl)} cannot be used: ${describeConnectError(cause)}.`;
    // A standby is such a loss too: its name may soon lead to the primary.
    const mayPass = isConnectionLoss(cause) || isOutageState(findDatabaseError(cause)?.code);
    throw mayPass ? new UnreachableError(message, { cause }) : new ConfigError(message, { cause });
  }
}

/** Describes a database, such as `inkpad at db.example:5432 as inkpad_app`. */
export function describeDatabase(databaseUrl: string): string {
  const { host, port, database, user: role } = new pg.Client({ connectionString: databaseUrl });
  const at = host.startsWith('/') ? host : `${host.includes(':') ? `[${host}]` : host}:${port}`;
  return `${database ?? ''} at ${at} as ${role ?? ''}`;
}

function isConnectError(error: unknown): error is Error {
  // A ConfigError says by itself what to do. What TypeORM itself throws, and type errors, are bugs of our own.
  const others = [ConfigError, TypeORMError, TypeError];
  return error instanceof Error && !others.some((kind) => error instanceof kind);
}

function describeConnectError(error: Error): string {
  // One error for each address of a name such as localhost.
  const [first = error] = error instanceof AggregateError ? (error.errors as Error[]) : [];
  const code = 'code' in first ? String(first.code) : '';
  const description = UNREACHABLE.get(code);
  if (description !== undefined) return `${description} (${code})`;
  const tlsError = describeTlsError(first);
  if (tlsError !== undefined) return tlsError;
  if (first instanceof StandbyError) return 'it is a standby, which cannot be written to';
  if (code === WRONG_PASSWORD) return 'the password is wrong, or there is no such database user';
  return getErrorMessage(first).replace(/\.$/, '');
}
