import { EventStoreDBClient } from '@eventstore/db-client';
import { ConfigError } from '#kernel/config-error.js';
import { getErrorMessage } from '#kernel/errors.js';
import { acceptIdentityOnly } from './accept-encoding.js';
import { renameProtocol } from './connection-string.js';
import { omitIpServerName } from './ip-server-name.js';
import {
  RESPONSE_TIMEOUT_MS,
  isCallError,
  needsNewClient,
  NoResponseError,
  withTimeout,
} from './eventstoredb-errors.js';

acceptIdentityOnly();
omitIpServerName();

const DISPOSE_TIMEOUT_MS = 1_000;
/** The keep-alive timeout of the client when the connection string sets none. */
const KEEP_ALIVE_TIMEOUT_MS = 10_000;

/**
 * Holds the client, and replaces it once a server has fallen silent or no leader was found. The old client would wait
 * for that server as long as its connection stays open, or never look for a leader again, while a new one asks the
 * cluster which node leads now.
 */
export class EventStoreDbConnection {
  private currentClient: EventStoreDBClient;
  private readonly abandoned = new WeakSet<EventStoreDBClient>();
  private isDisposed = false;
  /**
   * All clients of a process share a list of pending appends. A client that ends fails all of them, and a late response
   * to one of those would then end the process. So a new client sends nothing until the old one has ended.
   */
  private previousEnd: Promise<void> = Promise.resolve();
  private renewals = 0;

  /** @throws ConfigError when the client cannot read the connection string */
  constructor(
    private readonly url: string,
    /** The setting that an error message names. */
    private readonly setting = 'EVENT_STORE_URL',
  ) {
    this.currentClient = createClient(url, setting);
    installRejectionHandler();
  }

  get client(): EventStoreDBClient {
    return this.currentClient;
  }

  /**
   * Sends one request to the server. After a silence, or when no leader was found, the next one goes over a new
   * connection.
   * @throws errors that `classifyError` and `isSilence` tell apart
   */
  async call<T>(request: (client: EventStoreDBClient) => Promise<T>): Promise<T> {
    await this.previousEnd;
    const client = this.currentClient;
    try {
      return await withTimeout(request(client), RESPONSE_TIMEOUT_MS);
    } catch (error) {
      if (needsNewClient(error)) this.renew(client);
      throw error;
    }
  }

  /**
   * Reads from the server. A client that is disposed of cancels its reads and lets them end as if there were nothing
   * more to read, so this throws instead.
   * @throws errors that `classifyError` and `isSilence` tell apart
   */
  read<T>(request: (client: EventStoreDBClient) => Promise<T>): Promise<T> {
    return this.call(async (client) => {
      const result = await request(client);
      if (this.abandoned.has(client)) throw new NoResponseError('the connection was given up');
      return result;
    });
  }

  /**
   * Replaces a client that is of no more use, unless that has already happened.
   * @param failed the client that got no response or found no leader
   */
  renew(failed: EventStoreDBClient): void {
    if (failed !== this.currentClient || this.isDisposed) return;
    this.currentClient = createClient(makeUnique(this.url, ++this.renewals), this.setting);
    this.previousEnd = this.abandon(failed);
  }

  async dispose(): Promise<void> {
    this.isDisposed = true;
    await this.abandon(this.currentClient);
  }

  private async abandon(client: EventStoreDBClient): Promise<void> {
    this.abandoned.add(client);
    await disposeClient(client);
  }
}

/**
 * Keeps failed appends from ending the process. While the server accepts no more, appends wait in a queue of the
 * client. When their connection ends, each of them fails and leaves a second promise with the same error behind, which
 * no code can catch.
 */
function installRejectionHandler(): void {
  if (!process.listeners('unhandledRejection').includes(rethrowUnlessCallError)) {
    process.on('unhandledRejection', rethrowUnlessCallError);
  }
}

/** Throws what is not a gRPC error, as Node.js does without a listener. */
function rethrowUnlessCallError(reason: unknown): void {
  if (!isCallError(reason)) throw reason;
}

/** Disposes of a client. Does not wait long for one whose server is silent. */
async function disposeClient(client: EventStoreDBClient): Promise<void> {
  await withTimeout(client.dispose(), DISPOSE_TIMEOUT_MS).catch(() => undefined);
}

/**
 * Makes the options of a connection string unique. gRPC lets clients with equal options share a connection, even a
 * silent one; a keep-alive that differs by milliseconds makes it open another.
 */
function makeUnique(url: string, renewals: number): string {
  const option = /([?&]keepAliveTimeout=)(\d+)/i;
  const [match, , milliseconds] = option.exec(url) ?? [];
  if (match !== undefined) {
    return url.replace(option, `$1${Number(milliseconds) + (renewals % 1_000)}`);
  }
  const text = url.trim().replace(/\/+$/, '');
  const separator = text.includes('?') ? '&' : '?';
  return `${text}${separator}keepAliveTimeout=${KEEP_ALIVE_TIMEOUT_MS + (renewals % 1_000)}`;
}

function createClient(url: string, setting: string): EventStoreDBClient {
  const preference = /[?&]nodePreference=([^&]*)/i.exec(url)?.[1] ?? 'leader';
  if (preference.toLowerCase() !== 'leader') {
    throw new ConfigError(
      `${setting}: nodePreference must be leader, because a follower that is behind would deny what was written.`,
    );
  }
  const { warn } = console;
  let ignored: string | undefined;
  // The client reports an unknown option by printing the whole string, with the password in it.
  console.warn = (text: unknown) => (ignored ??= String(text));
  try {
    const client = EventStoreDBClient.connectionString(renameProtocol(url));
    if (ignored === undefined) return client;
    void disposeClient(client);
    throw new Error(ignored);
  } catch (error) {
    // After its first line the message contains the string.
    const [firstLine] = getErrorMessage(error).split('\n');
    throw new ConfigError(`${setting}: ${firstLine}`);
  } finally {
    console.warn = warn;
  }
}
