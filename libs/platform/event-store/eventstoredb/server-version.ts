import type { Logger } from '@nestjs/common';
import { getErrorMessage } from '#platform/kernel/errors.js';
import type { EventStoreDbConnection } from './eventstoredb-connection.js';

/** The supported versions: those that were tried, and those that speak the same protocol (docs/operating/install.md). */
const SUPPORTED = {
  EventStoreDB: ['23.10', '24.10'],
  KurrentDB: ['25', '26'],
};

/** What the client knows of the server, and shows to its own methods alone. */
type Internals = { capabilities: Promise<{ serverVersion?: string }> };

/** Logs which version a process works with, and warns where it was not tested. A start does not depend on it. */
export async function logServerVersion(
  connection: EventStoreDbConnection,
  log: Pick<Logger, 'log' | 'warn'>,
): Promise<void> {
  try {
    const { serverVersion } = await connection.call(
      (client) => (client as unknown as Internals).capabilities,
    );
    if (serverVersion === undefined) throw new Error('it does not say');
    log.log(nameServer(serverVersion));
    const warning = findVersionWarning(serverVersion);
    if (warning !== undefined) log.warn(warning);
  } catch (error) {
    log.warn(`The version of the event store is not known: ${getErrorMessage(error)}`);
  }
}

/** Finds what to say about a version that is not supported. */
export function findVersionWarning(version: string): string | undefined {
  const { EventStoreDB, KurrentDB } = SUPPORTED;
  if ([...EventStoreDB, ...KurrentDB].some((start) => version.startsWith(`${start}.`)))
    return undefined;
  return `${nameServer(version)} is not supported: use EventStoreDB ${EventStoreDB.join(' or ')}, or KurrentDB ${KurrentDB.join(' or ')}`;
}

/** Names the server and its version: EventStoreDB was renamed in version 25. */
function nameServer(version: string): string {
  return `${Number.parseInt(version, 10) >= 25 ? 'KurrentDB' : 'EventStoreDB'} ${version}`;
}
