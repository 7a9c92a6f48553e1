import { setTimeout as wait } from 'node:timers/promises';
import type { Random } from './random.js';

/** @property hasUnknownAttempt whether an earlier attempt got no response, and may have been the one that did it */
export type FinalResponse = {
  status: number;
  body: unknown;
  text: string;
  replayed: boolean;
  hasUnknownAttempt: boolean;
};

export type Request = { method: string; path: string; body?: unknown; key?: string };

const RESPONSE_TIMEOUT_MS = 20_000;
const RETRY_FOR_MS = 240_000;

/** Counts the outcomes of all clients' attempts. */
export type Attempts = {
  total: number;
  withoutResponse: number;
  unavailable: number;
  running: number;
};

/** Sends requests to several apis. Repeats a request without a response, at any of them. */
export class RetryingClient {
  constructor(
    readonly urls: () => string[],
    readonly token: string,
    readonly random: Random,
    /** Aborts all requests. */
    readonly signal: AbortSignal,
    private readonly attempts: Attempts,
  ) {}

  /**
   * Repeats a request until it gets a final response. A write must be repeatable by its Idempotency-Key or receipt
   * number, or be one that cannot be done twice.
   * @throws when there is none within four minutes, or the service responds that it has failed
   */
  async sendUntilDone(request: Request): Promise<FinalResponse> {
    const deadline = Date.now() + RETRY_FOR_MS;
    let last = '';
    let hasUnknownAttempt = false;
    for (let pause = 20; Date.now() < deadline; pause = Math.min(500, pause * 2)) {
      this.signal.throwIfAborted();
      const response = await this.attempt(request);
      if (typeof response === 'string') {
        this.attempts.withoutResponse++;
        hasUnknownAttempt = true;
        last = response;
      } else if (response.status === 503) {
        this.attempts.unavailable++;
        last = response.text;
      } else if (response.status === 409) {
        this.attempts.running++;
        last = response.text;
      } else if (response.status >= 500 || response.status === 429 || response.status === 408) {
        throw new Error(`${renderRequest(request)} got ${response.status}: ${response.text}`);
      } else return { ...response, hasUnknownAttempt };
      await wait(pause);
    }
    throw new Error(`${renderRequest(request)} got no final response within four minutes: ${last}`);
  }

  private async attempt({
    method,
    path,
    body,
    key,
  }: Request): Promise<Omit<FinalResponse, 'hasUnknownAttempt'> | string> {
    this.attempts.total++;
    try {
      const response = await fetch(`${this.random.pick(this.urls())}${path}`, {
        method,
        headers: {
          authorization: `Bearer ${this.token}`,
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...(key !== undefined && { 'idempotency-key': key }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        // The pages redirect to the service's public URL.
        redirect: 'manual',
        signal: AbortSignal.any([this.signal, AbortSignal.timeout(RESPONSE_TIMEOUT_MS)]),
      });
      const text = await response.text();
      const isJson = text !== '' && response.headers.get('content-type')?.includes('json');
      return {
        status: response.status,
        text,
        body: isJson ? (JSON.parse(text) as unknown) : undefined,
        replayed: response.headers.get('idempotent-replayed') === 'true',
      };
    } catch (error) {
      // Refused, cut, or timed out: the outcome is unknown.
      return error instanceof Error
        ? `${error.message} ${String(error.cause ?? '')}`
        : String(error);
    }
  }
}

export function renderRequest({ method, path, body, key }: Request): string {
  return `${method} ${path} ${JSON.stringify(body)} ${key === undefined ? '' : `under ${key}`}`;
}
