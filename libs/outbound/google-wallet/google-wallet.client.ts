import { Injectable } from '@nestjs/common';
import type { RequestInit } from 'undici';
import { Config } from '#configuration/config.js';
import { getNow } from '#platform/kernel/clock.js';
import { getErrorMessage } from '#platform/kernel/errors.js';
import { VendorRateLimiter } from '#platform/database/vendor-rate-limiter.js';
import { OutdatedError } from '#outbound/sending/http-response.js';
import { OutboundHttp } from '#outbound/sending/outbound-http.client.js';
import { parseGoogleResponse, type GoogleResponse } from './google-response.js';
import { GoogleTokens, TokenError } from './google-tokens.client.js';

const DEADLINE_MS = 10_000;
/** Google refused a new token too: an operator has to check the account. */
const UNAUTHORIZED_RETRY_MS = 5 * 60_000;
const RATE_LIMIT_RETRY_MS = 5_000;
/** Of all processes together. Google allows 20 to an issuer, and installations such as staging may share one. */
const REQUESTS_PER_SECOND = 15;
/** Bounds how long all processes pause after Google has refused a request as one too many. */
const MAX_PAUSE_MS = 5_000;
/** The name of the rate limit. Google counts requests by issuer, of which there is one. */
const GOOGLE = 'google';

export type GoogleKind = 'loyaltyClass' | 'loyaltyObject';

type Request = {
  method: 'GET' | 'POST' | 'PATCH';
  path: string;
  body?: object;
  /** Called right before the first byte is written. */
  mayBeSent?: () => boolean;
};

const always = () => true;

/** Calls Google's REST API. Only database errors are thrown: every failure of Google is a response. */
@Injectable()
export class GoogleWalletClient {
  private readonly http: OutboundHttp;

  constructor(
    private readonly tokens: GoogleTokens,
    private readonly rateLimiter: VendorRateLimiter,
    private readonly config: Config,
  ) {
    this.http = new OutboundHttp(config.outboundProxy);
  }

  /**
   * Inserts or patches a record.
   * @param isExisting the likely case; the other request is tried if Google says so
   * @param mayBeSent called right before the first byte is written
   */
  async put(
    kind: GoogleKind,
    record: { id: string },
    isExisting: boolean,
    signal: AbortSignal,
    mayBeSent = always,
  ): Promise<GoogleResponse> {
    const insert = () => this.send({ method: 'POST', path: kind, body: record, mayBeSent }, signal);
    const patch = () => this.patch(kind, record.id, record, signal, mayBeSent);
    if (isExisting) {
      const patched = await patch();
      return patched.kind === 'missing' ? insert() : patched;
    }
    const inserted = await insert();
    return inserted.kind === 'exists' ? patch() : inserted;
  }

  patch(
    kind: GoogleKind,
    id: string,
    change: object,
    signal: AbortSignal,
    mayBeSent = always,
  ): Promise<GoogleResponse> {
    const path = toPath(kind, id);
    return this.send({ method: 'PATCH', path, body: change, mayBeSent }, signal);
  }

  get(kind: GoogleKind, id: string, signal: AbortSignal): Promise<GoogleResponse> {
    return this.send({ method: 'GET', path: toPath(kind, id) }, signal);
  }

  addMessage(id: string, message: object, signal: AbortSignal): Promise<GoogleResponse> {
    const path = `${toPath('loyaltyObject', id)}/addMessage`;
    return this.send({ method: 'POST', path, body: { message } }, signal);
  }

  private async send(request: Request, signal: AbortSignal): Promise<GoogleResponse> {
    try {
      const first = await this.attempt(request, signal);
      // Tokens may be revoked before they expire.
      const result = first.kind === 'unauthorized' ? await this.attempt(request, signal) : first;
      if (result.kind === 'limited') {
        await this.rateLimiter.pauseFor(GOOGLE, Math.min(result.retryInMs, MAX_PAUSE_MS));
      }
      return result.kind === 'unauthorized'
        ? {
            kind: 'failed',
            error: 'the access token is not accepted',
            retryInMs: UNAUTHORIZED_RETRY_MS,
          }
        : result;
    } catch (error) {
      if (error instanceof TokenError) {
        return { kind: 'failed', error: error.message };
      }
      if (signal.aborted) return { kind: 'failed', error: 'there was no time left' };
      throw error;
    }
  }

  private async attempt(
    { method, path, body, mayBeSent = always }: Request,
    signal: AbortSignal,
  ): Promise<GoogleResponse> {
    const { google } = this.config;
    if (google === null) return { kind: 'failed', error: 'Google Wallet is not configured' };
    const token = await this.tokens.get(signal);
    if (!(await this.rateLimiter.acquire(GOOGLE, REQUESTS_PER_SECOND, signal))) {
      return {
        kind: 'failed',
        error: 'too many requests are waiting',
        retryInMs: RATE_LIMIT_RETRY_MS,
      };
    }
    let raw: { status: number; retryAfter: string | null; text: string };
    try {
      const request: RequestInit = {
        method,
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        ...(body && { body: JSON.stringify(body) }),
        redirect: 'error',
        signal: AbortSignal.any([signal, AbortSignal.timeout(DEADLINE_MS)]),
      };
      const url = `${google.url}/${path}`;
      const fetched = await this.http.fetchChecked(url, request, mayBeSent);
      const retryAfter = fetched.headers.get('retry-after');
      raw = { status: fetched.status, retryAfter, text: await fetched.text() };
    } catch (error) {
      if (error instanceof Error && error.cause instanceof OutdatedError) return { kind: 'unsent' };
      return { kind: 'failed', error: formatNetworkError(error) };
    }
    const { status, text, retryAfter } = raw;
    const parsed = parseGoogleResponse(status, text, retryAfter, getNow());
    if (parsed.kind === 'unauthorized') this.tokens.forget(token);
    return parsed;
  }
}

function toPath(kind: GoogleKind, id: string): string {
  return `${kind}/${encodeURIComponent(id)}`;
}

/** Formats the cause of a failed `fetch`, which is why the connection failed. */
function formatNetworkError(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  return `cannot be reached: ${getErrorMessage(cause ?? error)}`;
}
