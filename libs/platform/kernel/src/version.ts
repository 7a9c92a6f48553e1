/** Of the package; `version.spec.ts` keeps the two the same. */
export const VERSION = '0.1.0';
