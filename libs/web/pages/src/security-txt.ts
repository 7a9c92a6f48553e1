const DAY_MS = 86_400_000;
/** RFC 9116 recommends less than a year. It is written anew for each request, so only copies grow old. */
const VALID_MS = 90 * DAY_MS;

/**
 * Writes security.txt (RFC 9116): whom somebody tells who has found a vulnerability.
 * @param contact a URL
 */
export function renderSecurityTxt(contact: string, publicUrl: string, now: Date): string {
  return [
    `Contact: ${contact}`,
    `Expires: ${new Date(now.getTime() + VALID_MS).toISOString()}`,
    'Preferred-Languages: en',
    `Canonical: ${publicUrl}/.well-known/security.txt`,
    '',
  ].join('\n');
}
