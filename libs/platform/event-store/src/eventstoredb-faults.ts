import { setTimeout as wait } from 'node:timers/promises';

/** For one append, or one page of a read: the client itself has no time-out. */
export const ANSWER_WITHIN_MS = 5_000;

/** No answer within our own deadline: the client sets none for what it has sent. */
class NoAnswerError extends Error {}

export type Fault = 'conflict' | 'missing' | 'unreachable' | 'unanswered' | 'again' | 'other';

/** Never sent at all: gRPC found nobody to talk to. */
const NOBODY_THERE =
  /ECONNREFUSED|No connection established|Failed to connect|Name resolution failed|discover|ENOTFOUND|getaddrinfo/i;

/** Errors of the client, and the raw gRPC ones that it lets through after an outage. */
export function faultOf(error: unknown): Fault {
  if (error instanceof NoAnswerError) return 'unanswered';
  if (!(error instanceof Error)) return 'other';
  const { type, code } = error as { type?: string; code?: number };
  if (type === 'wrong-expected-version') return 'conflict';
  if (type === 'stream-not-found') return 'missing';
  if (type === 'not-leader') return 'again';
  if (NOBODY_THERE.test(error.message)) return 'unreachable';
  const lost =
    ['unavailable', 'timeout', 'deadline-exceeded', 'cancelled', 'unknown'].includes(type ?? '') ||
    [1, 2, 4, 14].includes(code ?? -1);
  return lost ? 'unanswered' : 'other';
}

/** The server said nothing at all, which a new connection may cure. */
export function isSilence(error: unknown): boolean {
  return error instanceof NoAnswerError;
}

/** Our own deadline: the client sets none for what it has sent. @throws NoAnswerError */
export async function within<T>(work: Promise<T>, milliseconds: number): Promise<T> {
  const timer = new AbortController();
  const late = wait(milliseconds, undefined, { signal: timer.signal }).then(() => {
    throw new NoAnswerError(`no answer within ${milliseconds} ms`);
  });
  late.catch(() => undefined);
  work.catch(() => undefined);
  try {
    return await Promise.race([work, late]);
  } finally {
    timer.abort();
  }
}
