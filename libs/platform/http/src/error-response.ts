import { fillPlaceholders, PLATFORM_ERRORS, type ErrorCode } from '#kernel/error-catalogue.js';
import type { ExistingRecord, FieldErrors } from '#kernel/errors.js';
import type { VersioningJson } from './versioning.js';

/** Path of the page that describes the error codes. */
export const ERROR_PAGE = '/docs/errors';

/** An error response before it is serialised. */
export type ErrorResponse = {
  status: number;
  code: string;
  error: string;
  errors?: FieldErrors;
  existing?: ExistingRecord;
  /** Null: from the beginning. */
  resumeAfter?: string | null;
  resolution?: string;
  retryAfterSeconds?: number;
  versioning?: VersioningJson;
};

/**
 * Creates a response from the catalogue, with overrides.
 * @param values of the placeholders in braces
 */
export function createErrorResponse(
  code: ErrorCode,
  overrides: Partial<Omit<ErrorResponse, 'status' | 'code'>> = {},
  values: Record<string, string | number> = {},
): ErrorResponse {
  const { status, error, resolution, retryAfterSeconds, meaning } = PLATFORM_ERRORS[code];
  return {
    status,
    code,
    error: error ?? meaning,
    ...(resolution !== undefined && { resolution: fillPlaceholders(resolution, values) }),
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
    ...overrides,
  };
}

export type ErrorJson = ReturnType<typeof toErrorJson>;

/** Renders the body of an error response (ERR-01 to ERR-07). */
export function toErrorJson(
  { code, error, errors, existing, resumeAfter, resolution, versioning }: ErrorResponse,
  requestId: string,
  publicUrl: string,
) {
  return {
    error,
    code,
    ...(errors && { errors }),
    ...(existing && { existing: { type: existing.type, id: existing.id } }),
    ...(resumeAfter !== undefined && { resume_after: resumeAfter }),
    ...(resolution !== undefined && { resolution }),
    ...(versioning && { versioning }),
    documentation_url: `${publicUrl}${ERROR_PAGE}#${code}`,
    request_id: requestId,
  };
}
