import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { Config } from '#configuration/config.js';
import { VERSION } from '#kernel/version.js';
import { excerptOf, OutdatedError, type Answer, type Request } from './answer.js';
import { Deadlines } from './deadlines.client.js';
import { BlockedAddressError, guardedConnector, wordsFor } from './guarded-agent.client.js';
import { HttpConnections } from './http-connections.client.js';
import { NameLookup } from './name-lookup.client.js';
import { signature, signingKey } from './webhook-signature.js';
import type { Attempted, Outcome } from './outcome.js';

const USER_AGENT = `Inkpad-Webhooks/${VERSION}`;
const DEADLINE_MS = 10_000;
const PARSED_KEPT = 5_000;

export type Attempt = {
  url: string;
  secret: string;
  /** The secret that `secret` has replaced. For a while both sign, and a receiver may check either signature. */
  previousSecret?: string;
  /** The public event's id; the same at every attempt. */
  eventId: string;
  type: string;
  body: Buffer;
  /** Asked right before the first byte is written. */
  mayBeSent?: () => boolean;
};

/** Makes signed attempts. */
@Injectable()
export class WebhookClient implements OnApplicationShutdown {
  private readonly connections: HttpConnections;
  /** The same few URLs and secrets come again and again, thousands of times a second. */
  private readonly places = new LRUCache({ max: PARSED_KEPT, memoMethod: placeOf });
  private readonly keys = new LRUCache({ max: PARSED_KEPT, memoMethod: signingKey });

  constructor(config: Config, names: NameLookup) {
    const connector = guardedConnector(names, config, DEADLINE_MS);
    this.connections = new HttpConnections(connector, new Deadlines(DEADLINE_MS));
  }

  /** @throws OutdatedError and nothing else: every failure is an outcome */
  async send(attempt: Attempt): Promise<Attempted> {
    const at = new Date();
    const began = performance.now();
    const done = (outcome: Outcome): Attempted => ({
      outcome,
      url: attempt.url,
      at,
      durationMs: Math.round(performance.now() - began),
      excerpt: null,
    });
    try {
      const answer = await this.post(attempt, at);
      const { status, retryAfter } = answer;
      const attempted = done({ kind: 'answered', status, retryAfter });
      return { ...attempted, excerpt: await excerptOf(answer) };
    } catch (error) {
      if (error instanceof OutdatedError) throw error;
      if (error instanceof BlockedAddressError) return done({ kind: 'blocked' });
      return done({ kind: 'failed', error: wordsFor(error) });
    }
  }

  async onApplicationShutdown(): Promise<void> {
    await this.connections.close();
  }

  private async post(attempt: Attempt, at: Date): Promise<Answer> {
    const { url, secret, previousSecret, eventId, type, body, mayBeSent } = attempt;
    const seconds = String(Math.floor(at.getTime() / 1000));
    const sign = (one: string) => signature(this.keys.memo(one), eventId, seconds, body);
    return this.connections.send({
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
      ...(mayBeSent && { mayBeSent }),
    });
  }
}

function placeOf(url: string): Pick<Request, 'origin' | 'path'> {
  const { origin, pathname, search } = new URL(url);
  return { origin, path: pathname + search };
}
