import { EventStoreDBClient } from '@eventstore/db-client';
import { Logger } from '@nestjs/common';
import { ConfigError } from '#platform/kernel/config-error.js';
import { getErrorMessage } from '#platform/kernel/errors.js';
import type { Position } from '../port/event-store.js';
import { BatchAppends, type Append } from './batch-appends.js';
import { findConnectionStringError, renameProtocol } from './connection-string.js';
import { NoResponseError, RESPONSE_TIMEOUT_MS, awaitResponse } from './eventstoredb-errors.js';
import { acceptIdentityOnly, omitIpServerName, shareNoConnections } from './grpc-clients.js';
import { RareWarnings } from './rare-warnings.js';

acceptIdentityOnly();
omitIpServerName();
shareNoConnections();

const DISPOSE_TIMEOUT_MS = 1_000;

/**
 * Holds the client, and replaces it once a server has fallen silent. The old client would wait for that server as long
 * as its connection stays open, while a new one asks the cluster which node leads now.
 */
export class EventStoreDbConnection {
  /** How many responses have arrived that no append waited for. */
  orphanCount = 0;
  private current: { client: EventStoreDBClient; appends: BatchAppends };
  private isDisposed = false;
  private readonly rareWarnings = new RareWarnings(new Logger('EventStoreDB connection'));

  /** @throws ConfigError when the client cannot read the connection string */
  constructor(
    private readonly url: string,
    /** The setting that an error message names. */
    private readonly setting = 'EVENT_STORE_URL',
  ) {
    this.current = this.connect();
  }

  get client(): EventStoreDBClient {
    return this.current.client;
  }

  /**
   * Appends to a stream. An append that gets no response in time may still be written.
   * @returns the position of its last event
   * @throws errors that `classifyError` tells apart
   */
  append(append: Append): Promise<Position | undefined> {
    const { appends } = this.current;
    return this.call(() => appends.append(append));
  }

  /**
   * Sends one request to the server. After a silence the next one goes over a new connection.
   * @throws errors that `classifyError` tells apart
   */
  async call<T>(request: (client: EventStoreDBClient) => Promise<T>): Promise<T> {
    // A client that is used after its end connects anew, and that connection keeps the process alive.
    if (this.isDisposed) throw new NoResponseError('the connection was closed');
    const { client } = this;
    try {
      return await awaitResponse(request(client), RESPONSE_TIMEOUT_MS);
    } catch (error) {
      if (error instanceof NoResponseError) this.renew(client);
      throw error;
    }
  }

  /**
   * Reads from the server. A client that is disposed of cancels its reads and lets them end as if there were nothing
   * more to read, so this throws instead.
   * @throws errors that `classifyError` tells apart
   */
  read<T>(request: (client: EventStoreDBClient) => Promise<T>): Promise<T> {
    return this.call(async (client) => {
      const result = await request(client);
      if (client !== this.client || this.isDisposed)
        throw new NoResponseError('the connection was given up');
      return result;
    });
  }

  /**
   * Replaces a client that is of no more use, unless that has already happened.
   * @param failed the client that got no response
   */
  renew(failed: EventStoreDBClient): void {
    if (failed !== this.client || this.isDisposed) return;
    const { current } = this;
    this.current = this.connect();
    void this.abandon(current);
  }

  async dispose(): Promise<void> {
    this.isDisposed = true;
    await this.abandon(this.current);
  }

  private connect(): typeof this.current {
    const client = createClient(this.url, this.setting);
    catchFailedSearches(client);
    return { client, appends: new BatchAppends(client, () => this.countOrphan()) };
  }

  private countOrphan(): void {
    this.orphanCount++;
    this.rareWarnings.warn(
      'responses arrive that no append waits for',
      `${this.orphanCount} so far`,
    );
  }

  private async abandon({ client, appends }: typeof this.current): Promise<void> {
    appends.close();
    // Not for long, if its server is silent.
    await awaitResponse(client.dispose(), DISPOSE_TIMEOUT_MS).catch(() => undefined);
  }
}

/**
 * Keeps a failed search for the leader from ending the process. A call of an earlier connection that ends meanwhile waits
 * for the same search, and the client leaves its failure to nobody.
 */
function catchFailedSearches(client: EventStoreDBClient): void {
  const internals = client as unknown as {
    handleError: (...parameters: unknown[]) => Promise<void>;
  };
  const { handleError } = internals;
  internals.handleError = (...parameters) => handleError(...parameters).catch(() => undefined);
}

function createClient(url: string, setting: string): EventStoreDBClient {
  const problem = findConnectionStringError(url);
  if (problem !== undefined) throw new ConfigError(`${setting}: ${problem}`);
  try {
    return EventStoreDBClient.connectionString(renameProtocol(url));
  } catch (error) {
    // After its first line the message contains the string.
    const [firstLine] = getErrorMessage(error).split('\n');
    throw new ConfigError(`${setting}: ${firstLine}`);
  }
}
