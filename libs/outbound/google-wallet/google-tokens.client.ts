import { Injectable } from '@nestjs/common';
import { Config } from '#configuration/config.js';
import { getNow } from '#platform/kernel/clock.js';
import { getErrorMessage } from '#platform/kernel/errors.js';
import type { ServiceAccount } from '#configuration/service-account.js';
import { OutboundHttp } from '#outbound/sending/outbound-http.client.js';
import { createAssertionJwt } from './google-jwt.js';

const DEADLINE_MS = 10_000;
/** A token is not used in its last minute, because a request may take a while. */
const EXPIRY_MARGIN_MS = 60_000;
const MAX_ERROR_LENGTH = 300;

/** @property usableUntil by `performance.now()` */
type Token = { value: string; usableUntil: number };

/** Thrown when there is no access token. The message contains no secret. */
export class TokenError extends Error {}

/** Fetches access tokens of the service account, one at a time and shared by all requests of the process. */
@Injectable()
export class GoogleTokens {
  private token: Token | undefined;
  private pendingToken: Promise<Token> | undefined;

  private readonly http: OutboundHttp;

  constructor(private readonly config: Config) {
    this.http = new OutboundHttp(config.outboundProxy);
  }

  /**
   * Returns the current token, or fetches one.
   * @param signal ends the wait of this caller only
   * @throws TokenError
   */
  async get(signal: AbortSignal): Promise<string> {
    if (this.token && this.token.usableUntil > performance.now()) return this.token.value;
    this.pendingToken ??= this.fetchToken().finally(() => {
      this.pendingToken = undefined;
    });
    const { value } = await waitUntilAborted(this.pendingToken, signal);
    return value;
  }

  /** Discards a token that Google has refused. */
  forget(value: string): void {
    if (this.token?.value === value) this.token = undefined;
  }

  private async fetchToken(): Promise<Token> {
    const { google } = this.config;
    if (google === null) throw new TokenError('Google Wallet is not configured');
    const requestedAt = performance.now();
    const { status, text } = await requestToken(this.http, google.account, getNow());
    const { access_token: value, expires_in: seconds } = parseTokenResponse(text);
    if (status !== 200 || typeof value !== 'string' || typeof seconds !== 'number') {
      throw new TokenError(`no access token: responded with ${status}${formatReason(text)}`);
    }
    this.token = { value, usableUntil: requestedAt + seconds * 1000 - EXPIRY_MARGIN_MS };
    return this.token;
  }
}

async function requestToken(
  http: OutboundHttp,
  account: ServiceAccount,
  now: Date,
): Promise<{ status: number; text: string }> {
  try {
    const response = await http.fetch(account.tokenUrl, {
      method: 'POST',
      body: new URLSearchParams({
        grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
        assertion: await createAssertionJwt(account, now),
      }),
      redirect: 'error',
      signal: AbortSignal.timeout(DEADLINE_MS),
    });
    return { status: response.status, text: await response.text() };
  } catch (cause) {
    const { cause: networkError } = cause as Error;
    throw new TokenError(`no access token: ${getErrorMessage(networkError ?? cause)}`, { cause });
  }
}

/** Rejects with the signal's reason as soon as it aborts. The promise itself continues for other callers. */
async function waitUntilAborted<T>(result: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  let rejectOnAbort = () => {};
  const aborted = new Promise<never>((_, reject) => {
    rejectOnAbort = () => reject(signal.reason as Error);
    signal.addEventListener('abort', rejectOnAbort, { once: true });
  });
  try {
    return await Promise.race([result, aborted]);
  } finally {
    signal.removeEventListener('abort', rejectOnAbort);
  }
}

function parseTokenResponse(text: string): Record<string, unknown> {
  try {
    return (JSON.parse(text) ?? {}) as Record<string, unknown>;
  } catch (error) {
    if (error instanceof SyntaxError) return {};
    throw error;
  }
}

/** Formats `error` and its description, which contain no secret (RFC 6749, section 5.2). */
function formatReason(text: string): string {
  const { error, error_description: description } = parseTokenResponse(text);
  const reason = [error, description].filter((part) => typeof part === 'string').join(', ');
  return reason === '' ? '' : ` (${reason.slice(0, MAX_ERROR_LENGTH)})`;
}
