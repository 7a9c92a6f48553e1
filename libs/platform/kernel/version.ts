/** Version of the package; `version.spec.ts` keeps the two equal. */
export const VERSION = '0.1.0';
