import { PLATFORM_ERRORS } from '#platform/kernel/error-catalogue.js';
import type { CatalogueError, ExistingRecord, FieldErrors } from '#platform/kernel/errors.js';
import { VersionSunsetError, type VersioningJson } from './versioning.js';

/** Path of the page that describes the error codes. */
export const ERROR_PAGE = '/docs/errors';

/** An error response before it is serialised. */
export type ErrorResponse = {
  status: number;
  code: string;
  error: string;
  errors?: FieldErrors;
  errorCodes?: Record<string, string[]>;
  existing?: ExistingRecord;
  /** Null: from the beginning. */
  resumeAfter?: string | null;
  resolution?: string | undefined;
  retryAfterSeconds?: number | undefined;
  versioning?: VersioningJson | undefined;
};

/** Creates the response to an error of the catalogue. */
export function createErrorResponse(error: CatalogueError): ErrorResponse {
  const { errorCode: code, message, resolution, retryAfterSeconds } = error;
  const { status } = PLATFORM_ERRORS[code];
  const versioning = error instanceof VersionSunsetError ? error.versioning : undefined;
  return { status, code, error: message, resolution, retryAfterSeconds, versioning };
}

export type ErrorJson = ReturnType<typeof toErrorJson>;

/** Renders the body of an error response (ERR-01 to ERR-07). */
export function toErrorJson(
  { code, error, errors, errorCodes, existing, resumeAfter, resolution, versioning }: ErrorResponse,
  requestId: string,
  publicUrl: string,
) {
  return {
    error,
    code,
    ...(errors && { errors }),
    ...(errorCodes && { error_codes: errorCodes }),
    ...(existing && { existing: { type: existing.type, id: existing.id } }),
    ...(resumeAfter !== undefined && { resume_after: resumeAfter }),
    ...(resolution !== undefined && { resolution }),
    ...(versioning && { versioning }),
    documentation_url: `${publicUrl}${ERROR_PAGE}#${code}`,
    request_id: requestId,
  };
}
