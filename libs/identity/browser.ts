/** Names a browser well enough for its user to recognize it, such as Safari on iPhone. */
export type Browser = { name: string; system: string };

/** In the order in which they are tried: many browsers also name those that they descend from. */
const NAMES: readonly (readonly [RegExp, string])[] = [
  [/\bEdgA?(iOS)?\//, 'Edge'],
  [/\bOPR\/|\bOPT\//, 'Opera'],
  [/\bSamsungBrowser\//, 'Samsung Internet'],
  [/\bVivaldi\//, 'Vivaldi'],
  [/\bFirefox\/|\bFxiOS\//, 'Firefox'],
  [/Chrome\/|\bCriOS\/|\bChromium\//, 'Chrome'],
  [/\bSafari\//, 'Safari'],
];
const SYSTEMS: readonly (readonly [RegExp, string])[] = [
  [/\biPhone\b/, 'iPhone'],
  [/\biPad\b/, 'iPad'],
  [/\bAndroid\b/, 'Android'],
  [/\bWindows\b/, 'Windows'],
  [/\bCrOS\b/, 'ChromeOS'],
  [/\bMacintosh\b/, 'Mac'],
  [/\bLinux\b/, 'Linux'],
];

/** Reads a User-Agent header. @returns null for what is no known browser, of which nothing is kept */
export function parseBrowser(userAgent: string | undefined): Browser | null {
  if (userAgent === undefined) return null;
  const name = findName(NAMES, userAgent);
  const system = findName(SYSTEMS, userAgent);
  return name === undefined || system === undefined ? null : { name, system };
}

function findName(
  names: readonly (readonly [RegExp, string])[],
  userAgent: string,
): string | undefined {
  return names.find(([pattern]) => pattern.test(userAgent))?.[1];
}
