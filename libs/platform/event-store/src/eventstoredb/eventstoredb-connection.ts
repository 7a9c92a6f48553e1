import { EventStoreDBClient } from '@eventstore/db-client';
import { ConfigError } from '#kernel/config-error.js';
import { getErrorMessage } from '#kernel/errors.js';
import {
  RESPONSE_TIMEOUT_MS,
  isCallError,
  isSilence,
  NoResponseError,
  withTimeout,
} from './eventstoredb-faults.js';

const DISPOSE_TIMEOUT_MS = 1_000;
/** The time that the client uses when the connection string sets none. */
const KEEP_ALIVE_TIMEOUT_MS = 10_000;

/**
 * The client, and a new one once a server has fallen silent: the old one would wait for that server's answer for as
 * long as its connection stays open, while a new one asks the cluster which node leads now.
 */
export class EventStoreDbConnection {
  private currentClient: EventStoreDBClient;
  private readonly abandoned = new WeakSet<EventStoreDBClient>();
  private isDisposed = false;
  /**
   * All clients of a process share a list of pending appends. One that ends fails all that are in it, and an answer to
   * one of those would then end the process: so nobody asks a new client until the old one has ended.
   */
  private previousEnd: Promise<void> = Promise.resolve();
  private renewals = 0;

  /** @throws ConfigError where the client cannot read the connection string */
  constructor(
    private readonly url: string,
    /** As which setting a fault is told. */
    private readonly setting = 'EVENT_STORE_URL',
  ) {
    this.currentClient = createClient(url, setting);
    installRejectionHandler();
  }

  get client(): EventStoreDBClient {
    return this.currentClient;
  }

  /**
   * One question to the server. After a silence the next one goes over a new connection.
   * @throws whatever `faultOf` and `isSilence` tell apart
   */
  async call<T>(request: (client: EventStoreDBClient) => Promise<T>): Promise<T> {
    await this.previousEnd;
    const client = this.currentClient;
    try {
      return await withTimeout(request(client), RESPONSE_TIMEOUT_MS);
    } catch (error) {
      if (isSilence(error)) this.renew(client);
      throw error;
    }
  }

  /**
   * A read. A client that is disposed of cancels its reads, and lets them end as if there were nothing more to read.
   * @throws whatever `faultOf` and `isSilence` tell apart
   */
  read<T>(request: (client: EventStoreDBClient) => Promise<T>): Promise<T> {
    return this.call(async (client) => {
      const result = await request(client);
      if (this.abandoned.has(client)) throw new NoResponseError('the connection was given up');
      return result;
    });
  }

  /** @param silent the client that got no answer; somebody else may already have replaced it */
  renew(silent: EventStoreDBClient): void {
    if (silent !== this.currentClient || this.isDisposed) return;
    this.currentClient = createClient(makeUnique(this.url, ++this.renewals), this.setting);
    this.previousEnd = this.abandon(silent);
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
 * While the server takes no more, appends wait in a queue of the client. When their connection ends, each of them fails,
 * and leaves a second promise behind with the same error, which nobody can catch and which would end the process.
 */
function installRejectionHandler(): void {
  if (!process.listeners('unhandledRejection').includes(rethrowUnlessCallError)) {
    process.on('unhandledRejection', rethrowUnlessCallError);
  }
}

/** What Node.js does with all of them where nobody listens. */
function rethrowUnlessCallError(reason: unknown): void {
  if (!isCallError(reason)) throw reason;
}

/** A client whose server is silent is abandoned after a while. */
async function disposeClient(client: EventStoreDBClient): Promise<void> {
  await withTimeout(client.dispose(), DISPOSE_TIMEOUT_MS).catch(() => undefined);
}

/**
 * gRPC lets clients with equal options share a connection, even a silent one. A keep-alive that differs by milliseconds
 * makes it open another.
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
  // For an unknown option the client prints the whole string, with the password in it.
  console.warn = (text: unknown) => (ignored ??= String(text));
  try {
    const client = EventStoreDBClient.connectionString(url);
    if (ignored === undefined) return client;
    void disposeClient(client);
    throw new Error(ignored);
  } catch (error) {
    // After its first line the message shows the string.
    const [firstLine] = getErrorMessage(error).split('\n');
    throw new ConfigError(`${setting}: ${firstLine}`);
  } finally {
    console.warn = warn;
  }
}
