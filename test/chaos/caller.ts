import { setTimeout as wait } from 'node:timers/promises';
import type { Random } from './random.js';

/** @property unsure whether an attempt before this answer got none, and may have been the one that did it */
export type Answer = {
  status: number;
  body: unknown;
  text: string;
  replayed: boolean;
  unsure: boolean;
};

export type Request = { method: string; path: string; body?: unknown; key?: string };

const ANSWERED_WITHIN_MS = 20_000;
const SETTLED_WITHIN_MS = 240_000;

/** Counts the outcomes of all callers' attempts. */
export type Attempts = { total: number; unknown: number; unavailable: number; running: number };

/** A client of several apis. An answer that does not come is asked for again, at any of them. */
export class Caller {
  constructor(
    readonly urls: () => string[],
    readonly token: string,
    readonly random: Random,
    /** Whether nobody waits for answers any more. */
    readonly over: AbortSignal,
    private readonly attempts: Attempts,
  ) {}

  /**
   * The final answer. A write must be one that can be repeated, by its Idempotency-Key or receipt number.
   * @throws when there is none in four minutes, or the service says that it failed
   */
  async settle(request: Request): Promise<Answer> {
    const deadline = Date.now() + SETTLED_WITHIN_MS;
    let last = '';
    let unsure = false;
    for (let pause = 20; Date.now() < deadline; pause = Math.min(500, pause * 2)) {
      this.over.throwIfAborted();
      const answer = await this.attempt(request);
      if (typeof answer === 'string') {
        this.attempts.unknown++;
        unsure = true;
        last = answer;
      } else if (answer.status === 503) {
        this.attempts.unavailable++;
        last = answer.text;
      } else if (answer.status === 409) {
        this.attempts.running++;
        last = answer.text;
      } else if (answer.status >= 500 || answer.status === 429 || answer.status === 408) {
        throw new Error(`${spelled(request)} was answered ${answer.status}: ${answer.text}`);
      } else return { ...answer, unsure };
      await wait(pause);
    }
    throw new Error(`${spelled(request)} came to no end: ${last}`);
  }

  private async attempt({
    method,
    path,
    body,
    key,
  }: Request): Promise<Omit<Answer, 'unsure'> | string> {
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
        // The pages lead to the service's public name.
        redirect: 'manual',
        signal: AbortSignal.any([this.over, AbortSignal.timeout(ANSWERED_WITHIN_MS)]),
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
      // Refused, cut, or silent for too long: what became of it is not known.
      return error instanceof Error
        ? `${error.message} ${String(error.cause ?? '')}`
        : String(error);
    }
  }
}

export function spelled({ method, path, body, key }: Request): string {
  return `${method} ${path} ${JSON.stringify(body)} ${key === undefined ? '' : `under ${key}`}`;
}
