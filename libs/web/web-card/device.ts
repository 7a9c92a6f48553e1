export type Device = 'apple' | 'android' | 'other';

/**
 * Detects which wallet a browser's device can have. A wrong guess only hides a button or leads to the web card: iPads
 * with desktop mode look like Macs, and both open passes.
 */
export function detectDevice(userAgent: string | undefined): Device {
  if (userAgent === undefined) return 'other';
  if (/Android/i.test(userAgent)) return 'android';
  return /iPhone|iPad|iPod|Macintosh/.test(userAgent) ? 'apple' : 'other';
}
