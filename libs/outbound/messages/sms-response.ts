/** The outcome of sending an SMS. Errors have codes only: a provider's message may contain the number. */
export type SmsOutcome =
  | { kind: 'sent'; providerId: string | null }
  /** A retry would not help. */
  | { kind: 'refused'; error: string }
  /** @property mayHaveArrived the text was sent, and the provider did not say what became of it */
  | { kind: 'failed'; error: string; retryInMs?: number; mayHaveArrived?: boolean };

const MAX_RETRY_MS = 60 * 60_000;
/** Codes for too many requests, which may also come with a 400. */
const TOO_MANY = new Set([20429, 14107, 30022]);
/** Nothing but the id of a message, because it is shown to owners. */
const PROVIDER_ID = /^[A-Za-z0-9_-]{1,64}$/;

/** The states of an accepted message that will not arrive. */
const LOST = new Set(['failed', 'undelivered', 'canceled']);

/**
 * Parses the response of a provider.
 * @param text the body
 * @param retryAfter the header, in seconds
 */
export function parseSmsOutcome(
  status: number,
  text: string,
  retryAfter: string | null,
): SmsOutcome {
  const body = parseBody(text);
  const code = Number(body['code'] ?? body['error_code'] ?? 0);
  const error = `responded with ${status}${code > 0 ? ` (${code})` : ''}`;
  if (status >= 200 && status < 300) {
    if (LOST.has(String(body['status']))) return { kind: 'refused', error };
    const { sid } = body;
    const isId = typeof sid === 'string' && PROVIDER_ID.test(sid);
    return { kind: 'sent', providerId: isId ? sid : null };
  }
  if (status === 429 || TOO_MANY.has(code)) {
    const seconds = Number(retryAfter ?? Number.NaN);
    const retryMs = Number.isFinite(seconds) && seconds > 0 ? seconds * 1000 : 0;
    return { kind: 'failed', error, retryInMs: Math.min(retryMs, MAX_RETRY_MS) };
  }
  // A 400 is about this message. Anything else is about the account or the server, which an operator can fix.
  return status === 400 ? { kind: 'refused', error } : { kind: 'failed', error };
}

function parseBody(text: string): Record<string, unknown> {
  try {
    return Object(JSON.parse(text)) as Record<string, unknown>;
  } catch {
    // For example, a proxy responds with a page of its own.
    return {};
  }
}
