/** Spaces, controls, and characters that nobody sees. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Z}]/u;
/** Of the web's schemes the parser takes any number of slashes, and backslashes too. */
const ABSOLUTE_START =
  /^(?:(?:https?|wss?|ftp):\/\/[^/]|(?!https?:|wss?:|ftp:|file:)[a-z][a-z\d+.-]*:\/\/)/i;

/**
 * Parses an absolute URL that stands as it is meant. The parser of the URL Standard trims and repairs instead of failing:
 * with the carriage return of an env file made on Windows, what it reads and what is stored would be two addresses. A
 * fragment is never sent, so whoever wrote one expects something else.
 *
 * @returns undefined for what is no URL, what the parser had to trim or repair, and for one with a fragment
 */
export function parseAbsoluteUrl(text: string): URL | undefined {
  if (INVISIBLE.test(text) || /[\\#]/.test(text) || !ABSOLUTE_START.test(text)) return undefined;
  return URL.canParse(text) ? new URL(text) : undefined;
}
