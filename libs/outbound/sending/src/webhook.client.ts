import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { LRUCache } from 'lru-cache';
import type { Socket } from 'node:net';
import type { Agent, DiagnosticsChannel } from 'undici';
import { Config } from '#kernel/config.js';
import { VERSION } from '#kernel/version.js';
import { BlockedAddressError, guardedAgent, wordsFor } from './guarded-agent.client.js';
import { NameLookup } from './name-lookup.client.js';
import { Deadlines, Exchange, type Answer, type Request } from './webhook-exchange.client.js';
import { signature, signingKey } from './webhook-signature.js';
import { type Outcome } from './outcome.js';

const USER_AGENT = `Inkpad-Webhooks/${VERSION}`;
const DEADLINE_MS = 10_000;
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

/** The connection that a request was written to, and how many bytes it had received by then. */
type Sending = { socket: Socket; bytesRead: number; reused: boolean };

/** Makes signed attempts. */
@Injectable()
export class WebhookClient implements OnApplicationShutdown {
  private readonly agent: Agent;
  private readonly deadlines = new Deadlines(DEADLINE_MS);
  private readonly sendings = new WeakMap<Buffer, Sending | undefined>();
  private readonly used = new WeakSet<Socket>();
  /** The same few URLs and secrets come again and again, thousands of times a second. */
  private readonly places = new LRUCache({ max: PARSED_KEPT, memoMethod: placeOf });
  private readonly keys = new LRUCache({ max: PARSED_KEPT, memoMethod: signingKey });

  constructor(config: Config, names: NameLookup) {
    this.agent = guardedAgent(names, config, DEADLINE_MS);
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
}

function placeOf(url: string): Pick<Request, 'origin' | 'path'> {
  const { origin, pathname, search } = new URL(url);
  return { origin, path: pathname + search };
}
