import { Injectable } from '@nestjs/common';
import type { RequestInit } from 'undici';
import { Config } from '#kernel/config.js';
import { messageOf } from '#kernel/errors.js';
import { fetchChecked } from '#sending/checked-fetch.client.js';
import { answerOf, type GoogleAnswer } from './google-answer.js';
import { GooglePace } from './google-pace.service.js';
import { GoogleTokens, TokenError } from './google-tokens.client.js';

const DEADLINE_MS = 10_000;
/** A new token is refused like the one before it: an operator must look at the account. */
const UNAUTHORIZED_MS = 5 * 60_000;
const NO_TURN_MS = 5_000;
/** What all processes keep still for after Google has refused a request as one too many. */
const MOST_REST_MS = 5_000;

export type GoogleKind = 'loyaltyClass' | 'loyaltyObject';

type Request = {
  method: 'GET' | 'POST' | 'PATCH';
  path: string;
  body?: object;
  /** Asked right before the first byte is written. */
  mayBeSent?: () => boolean;
};

const always = () => true;

/** Google's REST interface. Nothing here throws but what the database throws: every failure of Google's is an answer. */
@Injectable()
export class GoogleWalletClient {
  constructor(
    private readonly tokens: GoogleTokens,
    private readonly pace: GooglePace,
    private readonly config: Config,
  ) {}

  /**
   * Inserts or patches, whichever is right.
   * @param isKnown what is likely; the other is tried when Google says so
   * @param mayBeSent asked right before the first byte is written
   */
  async put(
    kind: GoogleKind,
    record: { id: string },
    isKnown: boolean,
    signal: AbortSignal,
    mayBeSent = always,
  ): Promise<GoogleAnswer> {
    const insert = () => this.send({ method: 'POST', path: kind, body: record, mayBeSent }, signal);
    const patch = () => this.patch(kind, record.id, record, signal, mayBeSent);
    if (isKnown) {
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
  ): Promise<GoogleAnswer> {
    const path = pathOf(kind, id);
    return this.send({ method: 'PATCH', path, body: change, mayBeSent }, signal);
  }

  get(kind: GoogleKind, id: string, signal: AbortSignal): Promise<GoogleAnswer> {
    return this.send({ method: 'GET', path: pathOf(kind, id) }, signal);
  }

  addMessage(id: string, message: object, signal: AbortSignal): Promise<GoogleAnswer> {
    const path = `${pathOf('loyaltyObject', id)}/addMessage`;
    return this.send({ method: 'POST', path, body: { message } }, signal);
  }

  private async send(request: Request, signal: AbortSignal): Promise<GoogleAnswer> {
    try {
      const answer = await this.attempt(request, signal);
      // Tokens may be taken back before their time.
      const settled = answer.kind === 'unauthorized' ? await this.attempt(request, signal) : answer;
      if (settled.kind === 'limited') {
        await this.pace.rest(Math.min(settled.retryInMs, MOST_REST_MS));
      }
      return settled.kind === 'unauthorized'
        ? { kind: 'failed', error: 'the access token is not taken', retryInMs: UNAUTHORIZED_MS }
        : settled;
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
  ): Promise<GoogleAnswer> {
    const { google } = this.config;
    if (google === null) return { kind: 'failed', error: 'Google Wallet is not configured' };
    const token = await this.tokens.current(signal);
    if (!(await this.pace.turn(signal))) {
      return { kind: 'failed', error: 'too many requests are waiting', retryInMs: NO_TURN_MS };
    }
    let response: { status: number; retryAfter: string | null; text: string };
    try {
      const request: RequestInit = {
        method,
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        ...(body && { body: JSON.stringify(body) }),
        redirect: 'error',
        signal: AbortSignal.any([signal, AbortSignal.timeout(DEADLINE_MS)]),
      };
      const answer = await fetchChecked(`${google.url}/${path}`, request, mayBeSent);
      const retryAfter = answer.headers.get('retry-after');
      response = { status: answer.status, retryAfter, text: await answer.text() };
    } catch (error) {
      return { kind: 'failed', error: reasonOf(error) };
    }
    const { status, text, retryAfter } = response;
    const answer = answerOf(status, text, retryAfter, new Date());
    if (answer.kind === 'unauthorized') this.tokens.forget(token);
    return answer;
  }
}

function pathOf(kind: GoogleKind, id: string): string {
  return `${kind}/${encodeURIComponent(id)}`;
}

/** `fetch` hides in the cause why a connection failed. */
function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  return `cannot be reached: ${messageOf(cause ?? error)}`;
}
