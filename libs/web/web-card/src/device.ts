export type Device = 'apple' | 'android' | 'other';

/**
 * Which wallet a browser's device can have. A guess that only hides a button or leads to the web card instead: iPads
 * that ask for the desktop's pages look like Macs, and both open passes.
 */
export function detectDevice(userAgent: string | undefined): Device {
  if (userAgent === undefined) return 'other';
  if (/Android/i.test(userAgent)) return 'android';
  return /iPhone|iPad|iPod|Macintosh/.test(userAgent) ? 'apple' : 'other';
}
