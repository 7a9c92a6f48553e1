import { ISSUES } from '#translations/issues.js';
import type { Issue } from '#platform/kernel/issues.js';

/** Shown in place of a value, which is only ever sent. */
export const HIDDEN_VALUE = '•••';

export const MAX_HEADERS = 10;
export const MAX_HEADER_NAME_LENGTH = 64;
export const MAX_HEADER_VALUE_LENGTH = 1024;

/** A store's own headers, by name. */
export type CustomHeaders = Record<string, string>;

export const HEADER_NAME = /^[A-Za-z][A-Za-z0-9_-]*$/;
/** Visible ASCII, and spaces between. */
export const HEADER_VALUE = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;

/** Headers that are about one connection (RFC 9110, section 7.6.1), about the message, or set by the client itself. */
const RESERVED_NAMES = new Set([
  'accept-encoding',
  'authentication-info',
  'connection',
  'expect',
  'host',
  'keep-alive',
  'service-event',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'user-agent',
  'via',
  'www-authenticate',
]);
const RESERVED_PREFIXES = ['content-', 'proxy-', 'webhook-'];

/** A part of a value that is shorter than this is no secret, and may occur in any text. */
const MIN_SECRET_LENGTH = 4;
const MIN_WORD_LENGTH = 8;

/**
 * Finds what is wrong with the headers of a request.
 * @param isUpdate whether a value may be `HIDDEN_VALUE`, which keeps the current one
 */
export function findHeadersIssue(
  headers: Record<string, unknown>,
  isUpdate: boolean,
): Issue | undefined {
  const entries = Object.entries(headers);
  if (entries.length > MAX_HEADERS) return ISSUES.too_many_headers({ max: MAX_HEADERS });
  const names = new Set<string>();
  for (const [name, value] of entries) {
    const error = findNameIssue(name) ?? findValueIssue(name, value, isUpdate);
    if (error !== undefined) return error;
    if (names.has(name.toLowerCase())) return ISSUES.header_repeated({ name });
    names.add(name.toLowerCase());
  }
  return undefined;
}

function findNameIssue(name: string): Issue | undefined {
  if (name.length > MAX_HEADER_NAME_LENGTH || !HEADER_NAME.test(name)) {
    return ISSUES.header_name_invalid({ max: MAX_HEADER_NAME_LENGTH });
  }
  const lowerCaseName = name.toLowerCase();
  const isReserved =
    RESERVED_NAMES.has(lowerCaseName) ||
    RESERVED_PREFIXES.some((prefix) => lowerCaseName.startsWith(prefix));
  return isReserved ? ISSUES.header_reserved({ name }) : undefined;
}

function findValueIssue(name: string, value: unknown, isUpdate: boolean): Issue | undefined {
  if (isUpdate && value === HIDDEN_VALUE) return undefined;
  if (typeof value !== 'string') return ISSUES.header_not_text({ name });
  if (value.length > MAX_HEADER_VALUE_LENGTH) {
    return ISSUES.header_too_long({ name, max: MAX_HEADER_VALUE_LENGTH });
  }
  return HEADER_VALUE.test(value) ? undefined : ISSUES.header_invalid({ name });
}

/** Returns the headers with every value hidden. */
export function hideHeaderValues(names: readonly string[]): CustomHeaders {
  return Object.fromEntries(names.map((name) => [name, HIDDEN_VALUE]));
}

/**
 * Hides the values of headers in what a receiver responded, which may repeat its request.
 * @param isCut whether the text may go on: its end is hidden too if a value may have begun there
 */
export function hideValuesIn(text: string, headers: CustomHeaders, isCut: boolean): string {
  const spans = listSecrets(headers)
    .flatMap((secret) => findSpans(text, secret, isCut))
    .sort((a, b) => a.from - b.from);
  let [hidden, end] = ['', 0];
  for (const { from, to } of spans) {
    // Values may overlap: nothing of either is shown.
    if (from >= end) hidden += text.slice(end, from) + HIDDEN_VALUE;
    end = Math.max(end, to);
  }
  return hidden + text.slice(end);
}

/** Finds where a value stands in a text. @param isCut also where its beginning ends the text */
function findSpans(text: string, secret: string, isCut: boolean): { from: number; to: number }[] {
  const spans: { from: number; to: number }[] = [];
  for (let from = text.indexOf(secret); from !== -1; from = text.indexOf(secret, from + 1))
    spans.push({ from, to: from + secret.length });
  const longest = isCut ? Math.min(secret.length - 1, text.length) : 0;
  for (let length = longest; length > 0; length--) {
    if (!text.endsWith(secret.slice(0, length))) continue;
    spans.push({ from: text.length - length, to: text.length });
    break;
  }
  return spans;
}

/** Lists values, the way they look in JSON, and their longer words, such as the token after `Bearer`. */
function listSecrets(headers: CustomHeaders): string[] {
  const secrets = Object.values(headers).flatMap((value) => [
    ...[value, JSON.stringify(value).slice(1, -1)].filter(
      ({ length }) => length >= MIN_SECRET_LENGTH,
    ),
    ...value.split(' ').filter(({ length }) => length >= MIN_WORD_LENGTH),
  ]);
  return [...new Set(secrets)];
}
