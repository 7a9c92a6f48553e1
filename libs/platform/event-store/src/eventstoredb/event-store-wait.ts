import { setTimeout as wait } from 'node:timers/promises';
import { ConfigError, UnreachableError } from '#kernel/config-error.js';
import { getErrorMessage, UnavailableError } from '#kernel/errors.js';
import type { PlatformConfig } from '#kernel/platform-config.js';
import { parseConnectionString } from './connection-string.js';
import { EventStoreDbConnection } from './eventstoredb-connection.js';
import { RefusedError } from './eventstoredb-errors.js';
import { EventStoreDbReader } from './eventstoredb-reader.js';
import { OwnStreams } from './eventstoredb-streams.js';
import { findTlsMismatch } from './tls-mismatch.js';

const RETRY_MS = 1_000;
const PRINT_INTERVAL_MS = 60_000;

type WaitConfig = Pick<
  PlatformConfig,
  'eventStoreUrl' | 'eventStoreStreamPrefix' | 'startWaitSeconds'
>;

/**
 * Waits at the start until EventStoreDB responds, if events are there, as a start waits for its database.
 * @param print gets a line at once, and then one a minute
 * @throws UnreachableError when it stays away longer than `startWaitSeconds`
 * @throws ConfigError when waiting does not help
 */
export async function waitForEventStore(
  { eventStoreUrl: url, eventStoreStreamPrefix: prefix, startWaitSeconds }: WaitConfig,
  print: (line: string) => void,
): Promise<void> {
  if (url === null) return;
  const connection = new EventStoreDbConnection(url);
  const reader = new EventStoreDbReader(connection, new OwnStreams(prefix, []));
  const deadline = performance.now() + startWaitSeconds * 1_000;
  try {
    for (let nextPrintAt = 0; ; await wait(RETRY_MS)) {
      const failure = await findFailure(url, reader);
      if (failure === undefined) return;
      const now = performance.now();
      if (now >= deadline) throw failure;
      if (now < nextPrintAt) continue;
      print(`${failure.message} Waiting for it.`);
      nextPrintAt = now + PRINT_INTERVAL_MS;
    }
  } finally {
    await connection.dispose();
  }
}

async function findFailure(
  url: string,
  reader: EventStoreDbReader,
): Promise<UnreachableError | undefined> {
  try {
    await reader.readHead();
    return undefined;
  } catch (error) {
    if (!(error instanceof UnavailableError)) throw error;
    const refusal = await findEventStoreRefusal(error, url);
    if (refusal) throw refusal;
    const hosts = parseConnectionString(url).hosts.join(', ');
    return new UnreachableError(
      `KurrentDB (EventStoreDB) at ${hosts} cannot be reached: ${getErrorMessage(error.cause).replace(/\.$/, '')}.`,
      { cause: error },
    );
  }
}

/** Finds why a server cannot be used until somebody changes a setting or a right; undefined when waiting may help. */
export async function findEventStoreRefusal(
  error: UnavailableError,
  url: string,
): Promise<ConfigError | undefined> {
  const reason =
    error.cause instanceof RefusedError ? error.cause.message : await findTlsMismatch(url);
  return reason === undefined ? undefined : new ConfigError(reason, { cause: error });
}
