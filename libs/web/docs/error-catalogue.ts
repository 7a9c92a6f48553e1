import { ERRORS, type ErrorEntry } from '#platform/kernel/error-catalogue.js';
import { STAMPING_ERRORS } from '#loyalty/stamping/stamping-errors.js';

/** Lists every error that a caller of the API can receive: those of the platform and of each context. */
const CATALOGUE = {
  ...ERRORS,
  ...STAMPING_ERRORS,
  not_found: { ...ERRORS.not_found, example: { error: 'Card not found' } },
};

export type DocumentedErrorCode = keyof typeof CATALOGUE;

export const ERROR_CODES = Object.keys(CATALOGUE) as DocumentedErrorCode[];

/** The catalogue without literal types. */
export const ERROR_CATALOGUE: Readonly<Record<DocumentedErrorCode, ErrorEntry>> = CATALOGUE;
