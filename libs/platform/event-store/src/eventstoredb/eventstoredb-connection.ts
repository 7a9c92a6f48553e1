import { EventStoreDBClient } from '@eventstore/db-client';
import { ConfigError } from '#kernel/config-error.js';
import { messageOf } from '#kernel/errors.js';
import {
  ANSWER_WITHIN_MS,
  isCallError,
  isSilence,
  NoAnswerError,
  within,
} from './eventstoredb-faults.js';

const DISPOSED_WITHIN_MS = 1_000;
/** The time that the client uses when the connection string sets none. */
const KEEP_ALIVE_TIMEOUT_MS = 10_000;

/**
 * The client, and a new one once a server has fallen silent: the old one would wait for that server's answer for as
 * long as its connection stays open, while a new one asks the cluster which node leads now.
 */
export class EventStoreDbConnection {
  private current: EventStoreDBClient;
  private readonly abandoned = new WeakSet<EventStoreDBClient>();
  private disposed = false;
  /**
   * All clients of a process share a list of pending appends. One that ends fails all that are in it, and an answer to
   * one of those would then end the process: so nobody asks a new client until the old one has ended.
   */
  private ended: Promise<void> = Promise.resolve();
  private renewals = 0;

  /** @throws ConfigError where the client cannot read the connection string */
  constructor(
    private readonly url: string,
    /** As which setting a fault is told. */
    private readonly setting = 'EVENT_STORE_URL',
  ) {
    this.current = clientOf(url, setting);
    outliveLostAppends();
  }

  get client(): EventStoreDBClient {
    return this.current;
  }

  /**
   * One question to the server. After a silence the next one goes over a new connection.
   * @throws whatever `faultOf` and `isSilence` tell apart
   */
  async ask<T>(question: (client: EventStoreDBClient) => Promise<T>): Promise<T> {
    await this.ended;
    const client = this.current;
    try {
      return await within(question(client), ANSWER_WITHIN_MS);
    } catch (error) {
      if (isSilence(error)) this.renew(client);
      throw error;
    }
  }

  /**
   * A read. A client that is disposed of cancels its reads, and lets them end as if there were nothing more to read.
   * @throws whatever `faultOf` and `isSilence` tell apart
   */
  read<T>(question: (client: EventStoreDBClient) => Promise<T>): Promise<T> {
    return this.ask(async (client) => {
      const answer = await question(client);
      if (this.abandoned.has(client)) throw new NoAnswerError('the connection was given up');
      return answer;
    });
  }

  /** @param silent the client that got no answer; somebody else may already have replaced it */
  renew(silent: EventStoreDBClient): void {
    if (silent !== this.current || this.disposed) return;
    this.current = clientOf(unlike(this.url, ++this.renewals), this.setting);
    this.ended = this.abandon(silent);
  }

  async dispose(): Promise<void> {
    this.disposed = true;
    await this.abandon(this.current);
  }

  private async abandon(client: EventStoreDBClient): Promise<void> {
    this.abandoned.add(client);
    await end(client);
  }
}

/**
 * While the server takes no more, appends wait in a queue of the client. When their connection ends, each of them fails,
 * and leaves a second promise behind with the same error, which nobody can catch and which would end the process.
 */
function outliveLostAppends(): void {
  if (!process.listeners('unhandledRejection').includes(endUnlessOfCall)) {
    process.on('unhandledRejection', endUnlessOfCall);
  }
}

/** What Node.js does with all of them where nobody listens. */
function endUnlessOfCall(reason: unknown): void {
  if (!isCallError(reason)) throw reason;
}

/** A client whose server is silent is abandoned after a while. */
async function end(client: EventStoreDBClient): Promise<void> {
  await within(client.dispose(), DISPOSED_WITHIN_MS).catch(() => undefined);
}

/**
 * gRPC lets clients with equal options share a connection, even a silent one. A keep-alive that differs by milliseconds
 * makes it open another.
 */
function unlike(url: string, renewals: number): string {
  const option = /([?&]keepAliveTimeout=)(\d+)/i;
  const [given, , milliseconds] = option.exec(url) ?? [];
  if (given !== undefined) {
    return url.replace(option, `$1${Number(milliseconds) + (renewals % 1_000)}`);
  }
  const text = url.trim().replace(/\/+$/, '');
  const separator = text.includes('?') ? '&' : '?';
  return `${text}${separator}keepAliveTimeout=${KEEP_ALIVE_TIMEOUT_MS + (renewals % 1_000)}`;
}

function clientOf(url: string, setting: string): EventStoreDBClient {
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
    void end(client);
    throw new Error(ignored);
  } catch (error) {
    // After its first line the message shows the string.
    const [said] = messageOf(error).split('\n');
    throw new ConfigError(`${setting}: ${said}`);
  } finally {
    console.warn = warn;
  }
}
