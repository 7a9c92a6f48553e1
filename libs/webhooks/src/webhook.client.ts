import { Inject, Injectable, type OnApplicationShutdown } from '@nestjs/common';
import type { LookupFunction } from 'node:net';
import { Webhook } from 'standardwebhooks';
import { Agent, buildConnector, errors, request, type Dispatcher } from 'undici';
import type { Config } from '#kernel/config.js';
import { VERSION } from '#kernel/version.js';
import { CONFIG } from '#database/database.module.js';
import { NameLookup } from './name-lookup.client.js';
import { isBlockedAddress, isLocalName, literalAddress } from './target-address.js';
import type { Outcome } from './webhook-delivery.js';

const USER_AGENT = `Inkpad-Webhooks/${VERSION}`;
const DEADLINE_MS = 10_000;
const BODY_LIMIT = 64 * 1024;
const EXCERPT_LIMIT = 1024;
const KEEP_ALIVE_MS = 10_000;
/** A warm connection must not outlive a change of the name's addresses for long. */
const CONNECTION_MS = 60_000;

export type Attempt = {
  url: string;
  secret: string;
  /** The public event's id; the same at every attempt. */
  eventId: string;
  type: string;
  body: string;
};

export type Attempted = {
  outcome: Outcome;
  at: Date;
  durationMs: number;
  /** The beginning of what the receiver answered. */
  excerpt: string | null;
};

class BlockedAddressError extends Error {
  readonly code = 'BLOCKED_ADDRESS';
}

/**
 * One signed attempt. The guard against our own network stands in the connector, because that is the
 * only place that sees the address really used: it judges literals, which no resolver ever sees, and
 * every resolved address, and connects to one that it has judged.
 */
@Injectable()
export class WebhookClient implements OnApplicationShutdown {
  private readonly agent: Agent;
  private readonly allowInsecure: boolean;

  constructor(
    @Inject(CONFIG) config: Config,
    private readonly names: NameLookup,
  ) {
    this.allowInsecure = config.webhookAllowInsecureTargets;
    this.agent = new Agent({
      connect: this.guarded(buildConnector({ timeout: DEADLINE_MS, lookup: this.lookup })),
      // Deadlines are our own: the ones of the library count from chunk to chunk.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAliveMaxTimeout: KEEP_ALIVE_MS,
      clientTtl: CONNECTION_MS,
      pipelining: 1,
    });
  }

  /** Never throws: whatever goes wrong is the outcome. */
  async send(attempt: Attempt): Promise<Attempted> {
    const at = new Date();
    const deadline = new AbortController();
    const timer = setTimeout(() => deadline.abort(), DEADLINE_MS);
    const done = (outcome: Outcome, excerpt: string | null = null): Attempted => ({
      outcome,
      at,
      durationMs: Date.now() - at.getTime(),
      excerpt,
    });
    try {
      const answer = await this.post(attempt, at, deadline.signal);
      const excerpt = await excerptOf(answer.body);
      const retryAfter = answer.headers['retry-after'];
      return done(
        {
          kind: 'answered',
          status: answer.statusCode,
          retryAfter: typeof retryAfter === 'string' ? retryAfter : null,
        },
        excerpt,
      );
    } catch (error) {
      if (error instanceof BlockedAddressError) return done({ kind: 'blocked' });
      return done({
        kind: 'failed',
        error: deadline.signal.aborted ? 'No answer within 10 seconds' : wordsFor(error),
      });
    } finally {
      clearTimeout(timer);
    }
  }

  async onApplicationShutdown(): Promise<void> {
    await this.agent.destroy();
  }

  private async post(
    { url, secret, eventId, type, body }: Attempt,
    at: Date,
    signal: AbortSignal,
  ): Promise<Dispatcher.ResponseData> {
    const send = () =>
      request(url, {
        dispatcher: this.agent,
        method: 'POST',
        signal,
        headers: {
          'content-type': 'application/json',
          'user-agent': USER_AGENT,
          'webhook-id': eventId,
          'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
          'webhook-signature': new Webhook(secret).sign(eventId, at, body),
          'service-event': type,
        },
        body,
      });
    try {
      return await send();
    } catch (error) {
      // The receiver closed an idle connection just as it was used again: it has seen nothing of this.
      if (isStaleConnection(error) && !signal.aborted) return send();
      throw error;
    }
  }

  private guarded(connect: buildConnector.connector): buildConnector.connector {
    return (options, callback) => {
      const { hostname, protocol } = options;
      const literal = literalAddress(hostname);
      const refused =
        literal === undefined
          ? (isLocalName(hostname) || protocol !== 'https:') && !this.allowInsecure
          : isBlockedAddress(literal, this.allowInsecure);
      if (refused) callback(new BlockedAddressError(), null);
      else connect(options, callback);
    };
  }

  /** What is handed on is exactly what is connected to, so a second look-up cannot differ. */
  private readonly lookup: LookupFunction = (name, options, callback) => {
    this.names.addressesOf(name).then(
      (found) => {
        const allowed = found.filter(
          ({ address }) => !isBlockedAddress(address, this.allowInsecure),
        );
        const [first] = allowed;
        if (!first) callback(new BlockedAddressError(), '');
        else if (options.all) callback(null, allowed);
        else callback(null, first.address, first.family);
      },
      (error: Error) => callback(error, ''),
    );
  };
}

/** Up to 64 KiB are read, so that the connection can be used again; the rest is cut off. */
async function excerptOf(body: Dispatcher.ResponseData['body']): Promise<string | null> {
  const start: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of body) {
      const bytes = Buffer.from(chunk as Uint8Array);
      if (size < EXCERPT_LIMIT) start.push(bytes);
      size += bytes.length;
      if (size > BODY_LIMIT) break;
    }
  } catch {
    // The head has decided already (contract section 10): what was read of the body is enough.
  }
  return size === 0 ? null : asText(Buffer.concat(start));
}

/** At most 1 KiB, and nothing that the database could not hold. */
function asText(bytes: Buffer): string {
  const cut = (buffer: Buffer) =>
    new TextDecoder('utf-8').decode(buffer.subarray(0, EXCERPT_LIMIT), { stream: true });
  const text = cut(bytes).replaceAll('\0', '\uFFFD');
  return cut(Buffer.from(text));
}

function isStaleConnection(error: unknown): boolean {
  return error instanceof errors.SocketError && (error.socket?.bytesRead ?? 0) > 0;
}

const WORDS: Record<string, string> = {
  ENOTFOUND: 'The name of the URL could not be resolved',
  EAI_AGAIN: 'The name of the URL could not be resolved',
  ECONNREFUSED: 'The connection was refused',
  ECONNRESET: 'The connection was closed before an answer came',
  EPIPE: 'The connection was closed before an answer came',
  EHOSTUNREACH: 'The host could not be reached',
  ENETUNREACH: 'The host could not be reached',
  ETIMEDOUT: 'The connection timed out',
  UND_ERR_CONNECT_TIMEOUT: 'The connection timed out',
  UND_ERR_SOCKET: 'The connection was closed before an answer came',
  UND_ERR_HEADERS_OVERFLOW: 'The head of the answer was too large',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'The TLS certificate is self-signed',
  SELF_SIGNED_CERT_IN_CHAIN: 'The TLS certificate is self-signed',
  CERT_HAS_EXPIRED: 'The TLS certificate has expired',
  ERR_TLS_CERT_ALTNAME_INVALID: 'The TLS certificate is for another name',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'The TLS certificate could not be verified',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'The TLS certificate could not be verified',
};

/** Plain words; the library's own messages name addresses. */
function wordsFor(error: unknown): string {
  const code = codeOf(error);
  if (code === undefined) return 'The request failed';
  if (code.startsWith('HPE_')) return 'The answer was no valid HTTP';
  return WORDS[code] ?? `The request failed (${code})`;
}

function codeOf(error: unknown): string | undefined {
  // Several addresses were tried: the first one's fault stands for all.
  if (error instanceof AggregateError) return codeOf(error.errors[0]);
  if (!(error instanceof Error)) return undefined;
  return 'code' in error && typeof error.code === 'string' ? error.code : codeOf(error.cause);
}
