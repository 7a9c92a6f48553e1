import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { Config } from '#configuration/config.js';
import { getNow } from '#platform/kernel/clock.js';
import { VERSION } from '#platform/kernel/version.js';
import {
  createExcerpt,
  OutdatedError,
  type HideSecrets,
  type ReceiverResponse,
  type WebhookRequest,
} from './http-response.js';
import { Deadlines } from './deadlines.client.js';
import {
  BlockedAddressError,
  createGuardedConnector,
  toRequestFailure,
} from './guarded-agent.client.js';
import { HttpConnections } from './http-connections.client.js';
import { NameLookup } from './name-lookup.client.js';
import { hideValuesIn, type CustomHeaders } from './webhook-headers.js';
import { sign, createSigningKey } from './webhook-signature.js';
import type { AttemptResult, Outcome } from './outcome.js';

const USER_AGENT = `Inkpad-Webhooks/${VERSION}`;
const DEADLINE_MS = 10_000;
const MAX_PARSED = 5_000;

export type Attempt = {
  url: string;
  secret: string;
  /** The secret that `secret` has replaced. Both sign for a while, and a receiver may verify either signature. */
  previousSecret?: string;
  /** The store's own. */
  headers?: CustomHeaders;
  /** The public event's id; the same at every attempt. */
  eventId: string;
  type: string;
  body: Buffer;
  /** Called right before the first byte is written. */
  mayBeSent?: () => boolean;
};

/** Sends signed attempts. */
@Injectable()
export class WebhookClient implements OnApplicationShutdown {
  private readonly connections: HttpConnections;
  /** Caches parsed targets, since the same few URLs and secrets are used thousands of times a second. */
  private readonly targets = new LRUCache({ max: MAX_PARSED, memoMethod: toTarget });
  private readonly keys = new LRUCache({ max: MAX_PARSED, memoMethod: createSigningKey });

  constructor(config: Config, names: NameLookup) {
    const connector = createGuardedConnector(names, config, DEADLINE_MS, config.outboundProxy);
    this.connections = new HttpConnections(connector, new Deadlines(DEADLINE_MS));
  }

  /** Makes an attempt. @throws OutdatedError and nothing else: every failure is an outcome */
  async send(attempt: Attempt): Promise<AttemptResult> {
    const at = getNow();
    const startedAt = performance.now();
    const toResult = (outcome: Outcome): AttemptResult => ({
      outcome,
      url: attempt.url,
      at,
      durationMs: Math.round(performance.now() - startedAt),
      excerpt: null,
    });
    try {
      const response = await this.post(attempt, at);
      const { status, retryAfter } = response;
      const result = toResult({ kind: 'responded', status, retryAfter });
      return { ...result, excerpt: await createExcerpt(response, createHiding(attempt.headers)) };
    } catch (error) {
      if (error instanceof OutdatedError) throw error;
      if (error instanceof BlockedAddressError) return toResult({ kind: 'blocked' });
      return toResult(toRequestFailure(error));
    }
  }

  async onApplicationShutdown(): Promise<void> {
    await this.connections.close();
  }

  private async post(attempt: Attempt, at: Date): Promise<ReceiverResponse> {
    const { url, secret, previousSecret, headers, eventId, type, body, mayBeSent } = attempt;
    const seconds = String(Math.floor(at.getTime() / 1000));
    const signWith = (key: string) => sign(this.keys.memo(key), eventId, seconds, body);
    return this.connections.send({
      ...this.targets.memo(url),
      headers: {
        ...headers,
        'content-type': 'application/json',
        'user-agent': USER_AGENT,
        'webhook-id': eventId,
        'webhook-timestamp': seconds,
        'webhook-signature':
          previousSecret === undefined
            ? signWith(secret)
            : `${signWith(secret)} ${signWith(previousSecret)}`,
        'service-event': type,
      },
      body,
      ...(mayBeSent && { mayBeSent }),
    });
  }
}

function toTarget(url: string): Pick<WebhookRequest, 'origin' | 'path'> {
  const { origin, pathname, search } = new URL(url);
  return { origin, path: pathname + search };
}

function createHiding(headers: CustomHeaders | undefined): HideSecrets | undefined {
  return headers && ((text, isCut) => hideValuesIn(text, headers, isCut));
}
