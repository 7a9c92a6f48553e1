import canonicalize from 'canonicalize';

/**
 * Writes canonical JSON (RFC 8785).
 * @throws Error for a value that has no JSON
 */
export function toCanonicalJson(value: unknown): string {
  const text = canonicalize(value);
  if (text === undefined) throw new Error(`a ${typeof value} has no JSON`);
  return text;
}
