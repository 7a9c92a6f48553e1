import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { LRUCache } from 'lru-cache';
import type { LookupFunction, Socket } from 'node:net';
import { Agent, buildConnector, type DiagnosticsChannel } from 'undici';
import { Config } from '#kernel/config.js';
import { VERSION } from '#kernel/version.js';
import { codeOf, NameLookup, UnresolvedNameError, type Address } from './name-lookup.client.js';
import { isBlockedAddress, isBlockedHost } from './target-address.js';
import {
  DeadlineError,
  Deadlines,
  Exchange,
  type Answer,
  type Request,
} from './webhook-exchange.client.js';
import { signature, signingKey } from './webhook-signature.js';
import { type Outcome } from './outcome.js';

const USER_AGENT = `Inkpad-Webhooks/${VERSION}`;
const DEADLINE_MS = 10_000;
const KEEP_ALIVE_MS = 10_000;
/** Bounds how long an open connection keeps using an address that the name no longer has. */
const CONNECTION_MS = 60_000;
/** Of the addresses of a name this many are tried, each but the last for this long, all within the deadline. */
const MOST_ADDRESSES = 4;
const ADDRESS_MS = 2_000;
const PARSED_KEPT = 5_000;
const SEND_HEADERS = 'undici:client:sendHeaders';

export type Attempt = {
  url: string;
  secret: string;
  /** The secret that `secret` has replaced. For a while both sign, and a receiver may check either signature. */
  previousSecret?: string;
  /** The public event's id; the same at every attempt. */
  eventId: string;
  type: string;
  body: Buffer;
};

export type Attempted = {
  outcome: Outcome;
  at: Date;
  durationMs: number;
  /** The beginning of the answer's body. */
  excerpt: string | null;
};

class BlockedAddressError extends Error {
  readonly code = 'BLOCKED_ADDRESS';
}

/** The connection that a request was written to, and how many bytes it had received by then. */
type Sending = { socket: Socket; bytesRead: number; reused: boolean };

/**
 * Makes signed attempts. The guard against our own network is in the connector, the only place that sees the address
 * really used. It checks literals, which no resolver ever sees, and every resolved address, and connects only to an
 * address that it has checked.
 */
@Injectable()
export class WebhookClient implements OnApplicationShutdown {
  private readonly agent: Agent;
  private readonly deadlines = new Deadlines(DEADLINE_MS);
  private readonly sendings = new WeakMap<Buffer, Sending | undefined>();
  private readonly used = new WeakSet<Socket>();
  /** The same few URLs and secrets come again and again, thousands of times a second. */
  private readonly places = new LRUCache({ max: PARSED_KEPT, memoMethod: placeOf });
  private readonly keys = new LRUCache({ max: PARSED_KEPT, memoMethod: signingKey });

  constructor(
    private readonly config: Config,
    private readonly names: NameLookup,
  ) {
    const connect = buildConnector({
      timeout: DEADLINE_MS,
      lookup: this.lookup,
      autoSelectFamily: true,
      autoSelectFamilyAttemptTimeout: ADDRESS_MS,
      // Set explicitly, so that no environment variable can turn it off.
      rejectUnauthorized: true,
      minVersion: 'TLSv1.2',
    });
    this.agent = new Agent({
      connect: this.guarded(connect),
      // Our own deadlines apply: the library's start again with every chunk.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAliveMaxTimeout: KEEP_ALIVE_MS,
      clientTtl: CONNECTION_MS,
      pipelining: 1,
    });
    subscribe(SEND_HEADERS, this.onSend);
  }

  /** Never throws: every failure is an outcome. */
  async send(attempt: Attempt): Promise<Attempted> {
    const at = new Date();
    const done = (outcome: Outcome, excerpt: string | null = null): Attempted => ({
      outcome,
      at,
      durationMs: Date.now() - at.getTime(),
      excerpt,
    });
    try {
      const { status, retryAfter, excerpt } = await this.post(attempt, at);
      return done({ kind: 'answered', status, retryAfter }, excerpt);
    } catch (error) {
      if (error instanceof BlockedAddressError) return done({ kind: 'blocked' });
      return done({ kind: 'failed', error: wordsFor(error) });
    }
  }

  async onApplicationShutdown(): Promise<void> {
    unsubscribe(SEND_HEADERS, this.onSend);
    await this.agent.destroy();
  }

  private async post(attempt: Attempt, at: Date): Promise<Answer> {
    const { url, secret, previousSecret, eventId, type } = attempt;
    // A view of its own identifies this request: the same bytes may be going to several subscriptions at once.
    const body = attempt.body.subarray();
    const seconds = String(Math.floor(at.getTime() / 1000));
    const sign = (one: string) => signature(this.keys.memo(one), eventId, seconds, body);
    const request = {
      ...this.places.memo(url),
      headers: {
        'content-type': 'application/json',
        'user-agent': USER_AGENT,
        'webhook-id': eventId,
        'webhook-timestamp': seconds,
        'webhook-signature':
          previousSecret === undefined ? sign(secret) : `${sign(secret)} ${sign(previousSecret)}`,
        'service-event': type,
      },
      body,
    };
    this.sendings.set(body, undefined);
    const first = new Exchange(this.deadlines);
    try {
      return await first.send(this.agent, request);
    } catch (error) {
      // Receivers close idle connections, possibly just as one is used again. There was no answer, so the request is
      // sent once more; a receiver that did get the first one recognises the webhook-id.
      if (!this.diedIdle(body) || first.hasExpired) throw error;
      return await new Exchange(this.deadlines).send(this.agent, request);
    }
  }

  /** This channel is the only place where the library tells which connection a request is written to. */
  private readonly onSend = (message: unknown): void => {
    const { request: sent, socket } = message as DiagnosticsChannel.ClientSendHeadersMessage & {
      request: { body?: unknown };
      socket: Socket;
    };
    if (!(sent.body instanceof Buffer) || !this.sendings.has(sent.body)) return;
    const reused = this.used.has(socket);
    this.sendings.set(sent.body, { socket, bytesRead: socket.bytesRead, reused });
    this.used.add(socket);
  };

  /** Whether a connection that had been used before ended without a byte of an answer. */
  private diedIdle(bytes: Buffer): boolean {
    const sending = this.sendings.get(bytes);
    return (
      sending !== undefined && sending.reused && sending.socket.bytesRead === sending.bytesRead
    );
  }

  private guarded(connect: buildConnector.connector): buildConnector.connector {
    return (options, callback) => {
      if (isBlockedHost(options.protocol, options.hostname, this.config)) {
        callback(new BlockedAddressError(), null);
      } else connect(options, callback);
    };
  }

  /** Returns exactly the addresses that are then connected to, so no second lookup can give others. */
  private readonly lookup: LookupFunction = (name, options, callback) => {
    this.names.addressesOf(name).then(
      ({ addresses, complete }) => {
        const allowed = inTurns(
          addresses.filter(({ address }) => !isBlockedAddress(address, this.config)),
        );
        const [first] = allowed;
        if (!first) {
          const fault = complete ? new BlockedAddressError() : new UnresolvedNameError(name);
          callback(fault, '');
        } else if (options.all) callback(null, allowed);
        else callback(null, first.address, first.family);
      },
      (error: Error) => callback(error, ''),
    );
  };
}

function placeOf(url: string): Pick<Request, 'origin' | 'path'> {
  const { origin, pathname, search } = new URL(url);
  return { origin, path: pathname + search };
}

/** The first few, alternating between IPv4 and IPv6, so that neither being broken here is fatal. */
export function inTurns(addresses: Address[]): Address[] {
  const [four, six] = [4, 6].map((family) => addresses.filter((one) => one.family === family));
  return addresses
    .flatMap((_, i) => [four?.[i], six?.[i]])
    .filter((address) => address !== undefined)
    .slice(0, MOST_ADDRESSES);
}

const WORDS: Record<string, string> = {
  ENOTFOUND: 'The name of the URL could not be resolved',
  ECONNREFUSED: 'The connection was refused',
  ECONNRESET: 'The connection was closed before an answer came',
  EPIPE: 'The connection was closed before an answer came',
  EHOSTUNREACH: 'The host could not be reached',
  ENETUNREACH: 'The host could not be reached',
  ETIMEDOUT: 'The connection timed out',
  UND_ERR_CONNECT_TIMEOUT: 'The connection timed out',
  UND_ERR_SOCKET: 'The connection was closed before an answer came',
  UND_ERR_HEADERS_OVERFLOW: 'The headers of the answer were too large',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'The TLS certificate is self-signed',
  SELF_SIGNED_CERT_IN_CHAIN: 'The TLS certificate is self-signed',
  CERT_HAS_EXPIRED: 'The TLS certificate has expired',
  ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION: 'The receiver offers no safe version of TLS',
  ERR_SSL_UNSUPPORTED_PROTOCOL: 'The receiver offers no safe version of TLS',
  ERR_SSL_WRONG_VERSION_NUMBER: 'The receiver does not speak TLS',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'The receiver does not speak TLS',
  ERR_TLS_CERT_ALTNAME_INVALID: 'The TLS certificate is for another name',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'The TLS certificate could not be verified',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'The TLS certificate could not be verified',
};

/** How the library words answers that it cannot follow, besides the codes of its parser. */
const NO_HTTP = new Set(['bad response', 'bad upgrade']);

/** Plain words, because the library's own messages name addresses. */
function wordsFor(error: unknown): string {
  if (error instanceof DeadlineError) return 'No answer within 10 seconds';
  if (isNoHttp(error)) return 'The answer was not valid HTTP';
  const code = codeOf(error);
  if (code === undefined) return 'The request failed';
  return WORDS[code] ?? `The request failed (${code})`;
}

function isNoHttp(error: unknown): boolean {
  const code = codeOf(error);
  if (code?.startsWith('HPE_') || code === 'ERR_ASSERTION') return true;
  if (!(error instanceof Error)) return false;
  return error.name === 'HTTPParserError' || NO_HTTP.has(error.message);
}
