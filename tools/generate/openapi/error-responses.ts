import { fillPlaceholders } from '#platform/kernel/error-catalogue.js';
import {
  ERROR_CATALOGUE,
  ERROR_CODES,
  type DocumentedErrorCode,
} from '#web/docs/error-catalogue.js';

type DocumentedError = {
  name: string;
  code: DocumentedErrorCode;
  description: string;
  error: string;
  errors?: Record<string, string[]>;
  resolution?: string;
  headers?: string[];
};

const entries = ERROR_CODES.map((code) => [code, ERROR_CATALOGUE[code]] as const);

/** The error responses of operations, by status. */
export const ERROR_RESPONSES: Record<number, DocumentedError> = Object.fromEntries(
  entries.flatMap(([code, entry]) => {
    const { status, response, meaning, error = meaning, resolution, headers = [], example } = entry;
    if (response === undefined) return [];
    const errorResponse: DocumentedError = {
      name: response,
      code,
      description: describeStatus(status, code),
      error,
      ...example,
      ...(resolution !== undefined && {
        resolution: fillPlaceholders(resolution, { seconds: 12 }),
      }),
      headers: [...headers],
    };
    return [[status, errorResponse]];
  }),
);

/** @throws Error for a code that the catalogue of errors lacks */
export function getDocumentedCode(code: string): DocumentedErrorCode {
  const documented = ERROR_CODES.find((errorCode) => errorCode === code);
  if (!documented) throw new Error(`the error code ${code} is not documented`);
  return documented;
}

/** Joins the first code of a status with the others, which are named. */
function describeStatus(status: number, first: DocumentedErrorCode): string {
  const others = entries
    .filter(([code, entry]) => entry.status === status && code !== first)
    .map(([code, { meaning }]) => `${code}: ${meaning}`);
  return [ERROR_CATALOGUE[first].meaning, ...others].join(' ');
}
