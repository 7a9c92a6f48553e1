import { configure } from 'safe-stable-stringify';

/** Strict: refuses what JSON has no form for, such as NaN, instead of writing null. */
const stringify = configure({ strict: true });

/**
 * Writes canonical JSON (RFC 8785): sorts names by their UTF-16 code units, and writes numbers and texts as JavaScript
 * does.
 * @throws Error for a value that has no JSON
 */
export function toCanonicalJson(value: unknown): string {
  const text = stringify(value);
  if (text === undefined) throw new Error(`a ${typeof value} has no JSON`);
  return text;
}
