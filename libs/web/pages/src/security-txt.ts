const DAY_MS = 86_400_000;
/** RFC 9116 recommends less than a year. Each request gets a new date, so only copies expire. */
const VALID_MS = 90 * DAY_MS;

/**
 * Renders security.txt (RFC 9116), which says where to report a vulnerability.
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
