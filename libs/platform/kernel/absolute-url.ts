/** Spaces, controls, and characters that nobody sees. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Z}]/u;
/**
 * Matches the start of a URL that needs no repair: for web schemes the parser accepts any number of slashes or
 * backslashes.
 */
const ABSOLUTE_START =
  /^(?:(?:https?|wss?|ftp):\/\/[^/]|(?!https?:|wss?:|ftp:|file:)[a-z][a-z\d+.-]*:\/\/)/i;

/**
 * Parses an absolute URL and refuses one that the parser would have to repair. The URL Standard's parser trims and
 * repairs instead of failing: with the carriage return of an env file made on Windows, the URL in use would differ
 * from the stored one. A fragment is never sent, so it is refused too.
 * @returns undefined for anything else
 */
export function parseAbsoluteUrl(text: string): URL | undefined {
  if (INVISIBLE.test(text) || /[\\#]/.test(text) || !ABSOLUTE_START.test(text)) return undefined;
  return URL.canParse(text) ? new URL(text) : undefined;
}

/** Tells whether the host of a URL is the machine itself. */
export function isLoopbackHost(hostname: string): boolean {
  return ['localhost', '127.0.0.1', '[::1]'].includes(hostname);
}
