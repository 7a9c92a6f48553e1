/** The outcome of a request to Google. */
export type GoogleResponse =
  | { kind: 'ok'; body: Record<string, unknown> }
  /** It was inserted before. */
  | { kind: 'exists' }
  | { kind: 'missing' }
  /** Three notifications of this kind have been sent in 24 hours. */
  | { kind: 'over_quota' }
  /** Google no longer accepts the access token. */
  | { kind: 'unauthorized' }
  /** There were more requests than Google allows. */
  | { kind: 'limited'; error: string; retryInMs: number }
  /** Google does not accept the request. */
  | { kind: 'refused'; error: string; classIsMissing: boolean }
  | { kind: 'failed'; error: string; retryInMs?: number }
  /** Nothing was sent: what it was made from went out of date. */
  | { kind: 'unsent' };

/** Google responds to too many requests without a Retry-After. */
const RATE_LIMIT_RETRY_MS = 2_000;
/** An operator has to fix the permissions of the account first. */
const FORBIDDEN_RETRY_MS = 10 * 60_000;
const MAX_RETRY_MS = 3600_000;
const MAX_ERROR_LENGTH = 300;
const RATE_LIMIT_REASONS = new Set(['rateLimitExceeded', 'userRateLimitExceeded', 'quotaExceeded']);

/** Parses a response of Google. @param retryAfter the header, in seconds or as a date */
export function parseGoogleResponse(
  status: number,
  text: string,
  retryAfter: string | null,
  now: Date,
): GoogleResponse {
  if (status >= 200 && status < 300) return { kind: 'ok', body: parseObject(text) };
  const { reason, message } = parseError(text);
  const error = `responded with ${status}${message ? `: ${message.slice(0, MAX_ERROR_LENGTH)}` : ''}`;
  const retryAfterMs = parseRetryAfterMs(retryAfter, now);
  if (status === 409) return { kind: 'exists' };
  if (status === 401) return { kind: 'unauthorized' };
  if (reason === 'QuotaExceededException') return { kind: 'over_quota' };
  if (status === 429 || (status === 403 && RATE_LIMIT_REASONS.has(reason))) {
    return { kind: 'limited', error, retryInMs: retryAfterMs ?? RATE_LIMIT_RETRY_MS };
  }
  if (status === 403) return { kind: 'failed', error, retryInMs: FORBIDDEN_RETRY_MS };
  const classIsMissing = reason === 'classNotFound';
  if (status === 404 && !classIsMissing) return { kind: 'missing' };
  if (status >= 400 && status < 500 && status !== 408) {
    return { kind: 'refused', error, classIsMissing };
  }
  return { kind: 'failed', error, ...(retryAfterMs !== undefined && { retryInMs: retryAfterMs }) };
}

function parseError(text: string): { reason: string; message: string } {
  const { error } = parseObject(text) as { error?: Record<string, unknown> };
  const [first] = Array.isArray(error?.['errors']) ? (error['errors'] as unknown[]) : [];
  const { reason } = (first ?? {}) as { reason?: unknown };
  const message = error?.['message'];
  return {
    reason: typeof reason === 'string' ? reason : '',
    message: typeof message === 'string' ? message : '',
  };
}

/** Parses a JSON object. Returns an empty one for anything else, for example a proxy's HTML. */
function parseObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch (error) {
    if (error instanceof SyntaxError) return {};
    throw error;
  }
}

function parseRetryAfterMs(retryAfter: string | null, now: Date): number | undefined {
  if (retryAfter === null) return undefined;
  const milliseconds = /^\d+$/.test(retryAfter)
    ? Number(retryAfter) * 1000
    : new Date(retryAfter).getTime() - now.getTime();
  if (Number.isNaN(milliseconds)) return undefined;
  return Math.min(Math.max(milliseconds, 0), MAX_RETRY_MS);
}
