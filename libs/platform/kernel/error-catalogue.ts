export type ErrorEntry = {
  status: number;
  /** Message, unless each error has its own. Placeholders in braces are filled in. */
  error?: string;
  /** Advice, sent as `resolution`. */
  resolution?: string;
  /** Advice in the documentation only, where each response has its own or none. */
  advice?: string;
  /** Meaning of the code, for the documentation. */
  meaning: string;
  /** Headers of the response beyond those of every response. */
  headers?: readonly string[];
  /** Retry-After unless the error has its own. */
  retryAfterSeconds?: number;
  /** Name of the response in the OpenAPI document, on the first code of each status. */
  response?: string;
  /** Example in the documentation, in place of `error`. */
  example?: { error: string; errors?: Record<string, string[]> };
};

/**
 * Lists the errors that the platform raises. Contexts list the codes of their own rejections; the OpenAPI
 * document and the page of error codes have all of them. Published: codes may be added, never removed.
 */
export const ERRORS = {
  unauthorized: {
    status: 401,
    error: 'The API token is missing or invalid',
    resolution: 'Send the header Authorization: Bearer <API_TOKEN> with a token that is in force.',
    meaning: 'The API token is missing or not in force.',
    response: 'Unauthorized',
  },
  forbidden: {
    status: 403,
    error: 'Your role in this account does not allow this',
    resolution:
      'Use a token whose role allows it, or have an owner of the account change your role.',
    meaning:
      'The role that the token has in the account does not allow this operation, or the token may only read.',
    response: 'Forbidden',
  },
  rate_limited: {
    status: 429,
    error: 'Rate limit exceeded',
    resolution: 'Wait {seconds} seconds and send the request again.',
    meaning: 'Too many requests: wait for the number of seconds in Retry-After.',
    headers: ['Retry-After'],
    response: 'TooManyRequests',
  },
  version_sunset: {
    status: 410,
    error: 'Version v1 of this API is retired',
    resolution: 'Move to a version that is still supported; versioning.policy_url says more.',
    meaning: 'This version of the API is retired.',
    response: 'Retired',
  },
  not_found: {
    status: 404,
    error: 'This path does not exist',
    resolution:
      'Check the path and its ids: each record has to belong to the one before it. The token must have access to the account.',
    meaning: 'The record or path does not exist, or the token may not access its account.',
    response: 'NotFound',
  },
  method_not_allowed: {
    status: 405,
    error: 'This path does not take {method}',
    resolution: 'Use one of {allowed}.',
    meaning: 'The path exists, but accepts other methods, listed in Allow.',
    headers: ['Allow'],
  },
  not_acceptable: {
    status: 406,
    error: 'Accept allows neither application/json nor text/event-stream',
    resolution: 'Allow application/json in the header Accept, or leave the header out.',
    meaning: 'The header Accept allows no media type in which the path responds.',
  },
  validation_failed: {
    status: 422,
    advice:
      'Correct each field listed in errors, then send the request again; base holds errors of the whole record.',
    meaning: 'A field is not valid: errors says which and why.',
    headers: ['Idempotent-Replayed'],
    response: 'Rejected',
    example: { error: 'name must not be blank', errors: { name: ['must not be blank'] } },
  },
  taken: {
    status: 422,
    advice:
      'Use the record that existing names, or send another value; the message says which field it is about.',
    meaning:
      'Another record has this e-mail address, phone number, external reference, receipt number or enrolment: existing says which.',
    headers: ['Idempotent-Replayed'],
  },
  cursor_ahead: {
    status: 422,
    advice:
      'Continue after the event that resume_after names, or from the beginning if it is null. What you received after it is no longer in the history: compare your records with the service.',
    meaning:
      'The service was restored from a backup that is older than this cursor. resume_after says where to continue.',
  },
  malformed_json: {
    status: 400,
    error: 'The body is not valid JSON',
    resolution: 'Send one JSON object in UTF-8.',
    meaning: 'The body is not valid JSON.',
    response: 'MalformedJson',
  },
  malformed_request: {
    status: 400,
    error: 'This is not an HTTP request',
    resolution: 'Send HTTP/1.1, and a body as long as Content-Length says.',
    meaning: 'The bytes received are not a complete HTTP request.',
  },
  header_fields_too_large: {
    status: 431,
    error: 'The header is larger than 16 KiB',
    resolution: 'Send fewer or shorter header fields.',
    meaning: 'The header of the request is larger than 16 KiB.',
    response: 'HeaderTooLarge',
  },
  request_timeout: {
    status: 408,
    error: 'The request did not arrive in time',
    resolution: 'Send it again.',
    meaning: 'The request did not arrive completely in time. Nothing was done.',
    response: 'TooLate',
  },
  payload_too_large: {
    status: 413,
    error: 'The body is too large',
    resolution:
      'Send at most 1 MiB in one request, 2 MiB where the body is a picture, and 20 MiB where it is a file to import.',
    meaning:
      'The body is larger than 1 MiB, a picture larger than 2 MiB, or a file larger than 20 MiB.',
    response: 'TooLarge',
  },
  unsupported_media_type: {
    status: 415,
    error: 'The body has a media type that this path does not accept',
    resolution:
      'Send JSON with the header Content-Type: application/json; a picture as image/png, image/jpeg or image/webp; a file as text/csv or application/x-ndjson.',
    meaning: "The path does not accept the body's media type.",
    response: 'NotJson',
  },
  limit_reached: {
    status: 422,
    advice:
      'Delete or archive what is not needed, or ask whoever runs the service to raise the limit.',
    meaning: 'There are as many of these records as there may be.',
  },
  quota_exceeded: {
    status: 422,
    advice: 'Ask whoever runs the service for a larger quota.',
    meaning: 'The account has used up its quota, of records or of what may be done in a day.',
  },
  idempotency_key_reused: {
    status: 422,
    advice: 'Use a new key for every new request; the same one only to repeat a request exactly.',
    meaning: 'The Idempotency-Key was already used with another body.',
  },
  idempotency_in_progress: {
    status: 409,
    error: 'A request with this Idempotency-Key is still running',
    resolution: 'Send the request again in a moment: it gets the response of the first one.',
    meaning: 'The first request with this Idempotency-Key is still in progress.',
    headers: ['Retry-After'],
    retryAfterSeconds: 1,
    response: 'InProgress',
  },
  internal: {
    status: 500,
    error: 'Something went wrong on our side',
    advice:
      'Send the request again later. If it happens again, send the request_id to the operator of the service.',
    meaning: 'Something went wrong on our side. Nothing was written.',
    response: 'Failed',
  },
  unavailable: {
    status: 503,
    error: 'The database cannot be reached',
    resolution: 'Nothing was written. Send the request again in a moment.',
    meaning:
      'A service that the request needs is unavailable. Nothing was written: send it again in a moment.',
    headers: ['Retry-After'],
    retryAfterSeconds: 1,
    response: 'Unavailable',
  },
  history_damaged: {
    status: 503,
    error: 'This record cannot be changed until its history is repaired',
    resolution:
      'Nothing was written. Sending the request again does not help: tell whoever runs the service, with the request_id.',
    meaning:
      'Somebody else has deleted events of this record in the event store, or appended some. Only the operator can repair that. Nothing was written.',
    headers: ['Retry-After'],
    retryAfterSeconds: 3_600,
  },
  maintenance: {
    status: 503,
    error: 'The service is in maintenance, and nothing can be changed',
    resolution: 'Nothing was written. Send the request again after Retry-After; reading goes on.',
    meaning:
      'The service is in maintenance: it can be read, and nothing can be changed. Nothing was written.',
    headers: ['Retry-After'],
    retryAfterSeconds: 30,
  },
} as const satisfies Record<string, ErrorEntry>;

export type ErrorCode = keyof typeof ERRORS;

/** The platform's errors without literal types. */
export const PLATFORM_ERRORS: Readonly<Record<ErrorCode, ErrorEntry>> = ERRORS;

/** Replaces placeholders in braces; one without a value stays. */
export function fillPlaceholders(text: string, values: Record<string, string | number>): string {
  return text.replaceAll(/\{(\w+)\}/g, (part, name: string) => String(values[name] ?? part));
}
