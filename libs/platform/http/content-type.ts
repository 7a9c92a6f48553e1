const PARAMETER = /;\s*([^\s;="]+)=(?:"((?:[^"\\]|\\.)*)"|([^;]*))/g;

/** Finds a parameter of a media type (RFC 9110, section 5.6.6), the first of its name. @param name in lower case */
export function findTypeParameter(
  contentType: string | undefined,
  name: string,
): string | undefined {
  for (const [, own = '', quoted, plain = ''] of (contentType ?? '').matchAll(PARAMETER)) {
    if (own.toLowerCase() === name) return quoted?.replaceAll(/\\(.)/g, '$1') ?? plain.trim();
  }
  return undefined;
}
