import { isIP } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { connect } from 'node:tls';
import { ConfigError, UnreachableError } from '#platform/kernel/config-error.js';
import { getErrorMessage, UnavailableError } from '#platform/kernel/errors.js';
import type { PlatformConfig } from '#platform/kernel/platform-config.js';
import { parseConnectionString } from './connection-string.js';
import { EventStoreDbConnection } from './eventstoredb-connection.js';
import { RefusedError } from './eventstoredb-errors.js';
import { EventStoreDbReader } from './eventstoredb-reader.js';
import { OwnStreams } from './eventstoredb-streams.js';

const RETRY_MS = 1_000;
const PRINT_INTERVAL_MS = 60_000;
const TLS_TIMEOUT_MS = 3_000;
/** What OpenSSL says about a server that responds in plain text. */
const NO_TLS = /wrong version number|packet length too long|unknown protocol|record layer failure/i;

/**
 * Waits at the start until EventStoreDB responds, as a start waits for its database.
 * @param print gets a line at once, and then one a minute
 * @throws UnreachableError when it stays away longer than `startWaitSeconds`
 * @throws ConfigError when waiting does not help
 */
export async function waitForEventStore(
  url: string,
  { eventStoreStreamPrefix: prefix, startWaitSeconds }: PlatformConfig,
  print: (line: string) => void,
): Promise<void> {
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
    const configError = await findEventStoreConfigError(error, url);
    if (configError) throw configError;
    const hosts = parseConnectionString(url).hosts.join(', ');
    return new UnreachableError(
      `KurrentDB (EventStoreDB) at ${hosts} cannot be reached: ${getErrorMessage(error.cause).replace(/\.$/, '')}.`,
      { cause: error },
    );
  }
}

/** Finds why a server cannot be used until somebody changes a setting or a right; undefined when waiting may help. */
export async function findEventStoreConfigError(
  error: UnavailableError,
  url: string,
): Promise<ConfigError | undefined> {
  const reason =
    error.cause instanceof RefusedError ? error.cause.message : await findTlsMismatch(url);
  return reason === undefined ? undefined : new ConfigError(reason, { cause: error });
}

/**
 * Finds out whether a server that cannot be reached speaks TLS where the connection string says that it does not, or
 * the other way round: gRPC reports a lost connection either way.
 * @returns what to do; undefined when that is not the reason
 */
async function findTlsMismatch(url: string): Promise<string | undefined> {
  const { hosts, isTls } = parseConnectionString(url);
  for (const host of hosts) {
    const speaksTls = await detectTls(host);
    if (speaksTls === true && !isTls) {
      return `The event store at ${host} speaks TLS, and EVENT_STORE_URL says tls=false: remove that, and name the certificate of its authority as tlsCAFile unless it is a public one.`;
    }
    if (speaksTls === false && isTls) {
      return `The event store at ${host} does not speak TLS, and EVENT_STORE_URL does not say tls=false: add that, or set up TLS on the server.`;
    }
  }
  return undefined;
}

/** @returns undefined when nothing can be told: nobody listens, or there is no response in time */
function detectTls(address: string): Promise<boolean | undefined> {
  const [, host = '', port] = /^\[?([^\]]*?)\]?:(\d+)$/.exec(address) ?? [];
  return new Promise((resolve) => {
    const socket = connect({
      host,
      port: Number(port),
      // Only what it speaks is of interest here; nothing is sent.
      rejectUnauthorized: false,
      ALPNProtocols: ['h2'],
      ...(isIP(host) === 0 && { servername: host }),
    });
    const end = (result: boolean | undefined) => {
      socket.destroy();
      resolve(result);
    };
    socket.setTimeout(TLS_TIMEOUT_MS, () => end(undefined));
    socket.once('secureConnect', () => end(true));
    socket.once('error', (error) => end(NO_TLS.test(error.message) ? false : undefined));
    socket.once('close', () => end(undefined));
  });
}
