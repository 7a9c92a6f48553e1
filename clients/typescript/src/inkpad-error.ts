import type { Schemas } from './schema.js';
import type { WebHeaders } from './web-types.js';

type ErrorSchema = Schemas['ErrorResponse'];

/**
 * The codes of the service, `no_response` and `timed_out` when no response came, and `unknown` when the response was not
 * the service's own. A later version of the service may have more.
 */
export type ErrorCode =
  | ErrorSchema['code']
  | 'no_response'
  | 'timed_out'
  | 'unknown'
  | (string & Record<never, never>);

export type ErrorBody = Partial<Omit<ErrorSchema, 'code'>> & { code?: ErrorCode };

/** A request that was refused, or could not be done. Each code has a subclass; one that is not known yet has none. */
export class InkpadError extends Error {
  override readonly name = 'InkpadError';
  /** 0 when no response came. */
  readonly status: number;
  /** For programs. */
  readonly code: ErrorCode;
  /** On 422: messages by field; `base` is a fault of the whole record. */
  readonly errors: Record<string, string[]>;
  /** On 422: the codes of the messages in `errors`, by field and in the same order. For programs. */
  readonly errorCodes: Record<string, string[]>;
  /** With the code `taken`: the record that has the value. */
  readonly existing: ErrorSchema['existing'];
  /**
   * With the code `cursor_ahead`: the id of the event to continue after; null: continue from the beginning.
   * Otherwise undefined.
   */
  readonly resumeAfter: string | null | undefined;
  /** How to fix it, for people. */
  readonly resolution: string | undefined;
  readonly documentationUrl: string | undefined;
  /** To be quoted to whoever runs the service. */
  readonly requestId: string | null;
  /** Seconds. */
  readonly retryAfter: number | null;
  /** Of the response; null when none came. */
  readonly headers: WebHeaders | null;

  constructor(
    status: number,
    { error, code, errors, error_codes, existing, resume_after, ...advice }: ErrorBody,
    { headers, cause }: { headers?: WebHeaders; cause?: unknown } = {},
  ) {
    super(typeof error === 'string' ? error : `Not a response of Inkpad (status ${status})`, {
      cause,
    });
    this.status = status;
    this.code = code ?? 'unknown';
    this.errors = errors ?? {};
    this.errorCodes = error_codes ?? {};
    this.existing = existing;
    this.resumeAfter = resume_after;
    this.resolution = advice.resolution;
    this.documentationUrl = advice.documentation_url;
    this.requestId = advice.request_id ?? headers?.get('x-request-id') ?? null;
    this.retryAfter = parseRetryAfter(headers?.get('retry-after'));
    this.headers = headers ?? null;
  }
}

/** @param retryAfter seconds, or a date, which proxies send */
function parseRetryAfter(retryAfter: string | null | undefined): number | null {
  if (!retryAfter) return null;
  if (/^\d+$/.test(retryAfter)) return Number(retryAfter);
  const at = Date.parse(retryAfter);
  return Number.isNaN(at) ? null : Math.max(0, (at - Date.now()) / 1000);
}
