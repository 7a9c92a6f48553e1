import { readFileSync } from 'node:fs';
import { describeFileError } from './file-errors.js';
import { parseAbsoluteUrl } from './absolute-url.js';
import { parseSigner } from './signed-note.js';
import { isCalendarDay } from './zoned-time.js';

/** Says why a text is not valid, where its parser knows more than that. */
export class Invalid {
  constructor(readonly message: string) {}
}

/** Parsers by the names of the settings; each returns `Invalid` for a text that cannot be used. */
export const parsers = new Map<string, (text: string) => unknown>();

/** Texts of .env.example by the name of the first setting that they describe. */
export const descriptions = new Map<string, string>();

/** Describes a setting, and those after it without a description of their own, in .env.example. */
export function Describe(text: string): PropertyDecorator {
  return (_, name) => void descriptions.set(String(name), text.trim().replaceAll(/\s+/g, ' '));
}

/** The settings that hold a secret, or a certificate in several lines. */
export const secrets = new Set<string>();

/** Lets the setting be read from a file instead, which the same name with `_FILE` at its end names. */
export function Secret(): PropertyDecorator {
  return (_, name) => void secrets.add(String(name));
}

/** The settings that are no texts: what follows from a number or a flag means the same in any spelling. */
export const kinds = new Map<string, 'number' | 'flag'>();

function withKind(kind: 'number' | 'flag', setting: PropertyDecorator): PropertyDecorator {
  return (target, name) => {
    kinds.set(String(name), kind);
    setting(target, name);
  };
}

/**
 * @param parse returns undefined for a text that cannot be used
 * @param message for such a text
 */
export function Setting(parse: (text: string) => unknown, message: string): PropertyDecorator {
  return (_, name) => void parsers.set(String(name), (text) => parse(text) ?? new Invalid(message));
}

export function Text(): PropertyDecorator {
  return Setting((text) => text, 'must be a text');
}

export function WholeNumber(min: number, max = Number.MAX_SAFE_INTEGER): PropertyDecorator {
  const range = max === Number.MAX_SAFE_INTEGER ? `from ${min} on` : `from ${min} to ${max}`;
  const parse = (text: string) => {
    const number = Number(text);
    return Number.isSafeInteger(number) && number >= min && number <= max ? number : undefined;
  };
  return withKind('number', Setting(parse, `must be a whole number ${range}`));
}

export function Matching(pattern: RegExp, message: string): PropertyDecorator {
  return Setting((text) => (pattern.test(text) ? text : undefined), message);
}

export function OneOf(values: readonly string[]): PropertyDecorator {
  return Setting((text) => values.find((value) => value === text), `must be ${values.join(', ')}`);
}

export function Moment(): PropertyDecorator {
  return Setting(parseMoment, 'must be an ISO date such as 2027-01-31, or a time with its offset');
}

export function Url(...protocols: string[]): PropertyDecorator {
  return UrlSetting(protocols, normalizeUrl, ENCODING_MESSAGE);
}

/** @param parse returns undefined for a URL that cannot be used, as the message says */
export function UrlSetting(
  protocols: string[],
  parse: (url: URL, text: string) => unknown,
  message: string,
): PropertyDecorator {
  return Setting((text) => {
    const url = parseAbsoluteUrl(text);
    if (!url || !protocols.includes(url.protocol)) {
      const start = renderUrlMessage(protocols);
      return new Invalid(text.includes('@') ? `${start}; it ${ENCODING_MESSAGE}` : start);
    }
    if (!isLoginEncoded(url)) return undefined;
    // TLS has no name that ends so (RFC 6066, section 3), and nor have certificates.
    if (/(\.|%2e)$/i.test(url.hostname))
      return new Invalid('must name a host that does not end with a dot');
    return parse(url, text);
  }, message);
}

/** Such a character would end the password: the rest of it would be taken for a host, and shown. */
const ENCODING_MESSAGE =
  'must have %25, %40, %2F and the like for special characters of name and password';

/** Tells whether name and password have no character that ends them earlier, where a server has a login. */
function isLoginEncoded({ protocol, username, password, pathname, search }: URL): boolean {
  if (/%(?![0-9a-f]{2})/i.test(username + password)) return false;
  return /^https?:$/.test(protocol) || !(pathname + search).includes('@');
}

/** Renders the URL as the parser does, without a path that was not there: paths are appended to many. */
function normalizeUrl({ href }: URL, text: string): string {
  return text.endsWith('/') ? href : href.replace(/\/$/, '');
}

/** Accepts a URL that paths can be appended to. */
export function PublicUrl(): PropertyDecorator {
  return UrlSetting(['http:', 'https:'], parsePublicUrl, 'must have no login or query');
}

export function DatabaseUrl(): PropertyDecorator {
  return UrlSetting(['postgres:', 'postgresql:'], parseDatabaseUrl, ENCODING_MESSAGE);
}

function parsePublicUrl(url: URL, text: string): string | undefined {
  return url.username || url.password || text.includes('?') ? undefined : normalizeUrl(url, text);
}

/** Parameters of the URL of a database that name a file, as for libpq. */
const DATABASE_FILES = ['sslrootcert', 'sslcert', 'sslkey'];

/** @returns undefined for what is percent-encoded wrongly */
function parseDatabaseUrl({ searchParams }: URL, text: string): string | Invalid | undefined {
  try {
    decodeURIComponent(text);
  } catch {
    return undefined;
  }
  for (const name of DATABASE_FILES) {
    const error = findFileError(name, searchParams.get(name));
    if (error !== undefined) return new Invalid(error);
  }
  return text;
}

/** Finds why the file that an option of a URL names cannot be read. */
export function findFileError(option: string, file: string | null): string | undefined {
  try {
    if (file !== null) readFileSync(file);
    return undefined;
  } catch (error) {
    return `names a file in ${option} that cannot be read: ${file}: ${describeFileError(error) ?? String(error)}`;
  }
}

function renderUrlMessage(protocols: string[]): string {
  const starts = protocols.map((p) => `${p}//`).join(' or ');
  return `must be a URL that starts with ${starts}, without spaces, backslashes and "#"`;
}

export function parseMasterKey(text: string): string | undefined {
  return Buffer.from(text, 'base64').length === 32 ? text : undefined;
}

export function parseSignerKey(text: string): string | undefined {
  return parseSigner(text) && text;
}

export function Flag(): PropertyDecorator {
  return withKind('flag', Setting(parseFlag, 'must be true or false'));
}

function parseFlag(text: string): boolean | undefined {
  if (['true', '1'].includes(text)) return true;
  return ['false', '0'].includes(text) ? false : undefined;
}

export function parseOrigins(text: string): string[] | undefined {
  const origins = text.split(',').map((origin) => origin.trim());
  const isValid = origins.every((origin) => origin === '*' || isOrigin(origin));
  return isValid ? origins : undefined;
}

const ORIGIN = /^([a-z][a-z\d+.-]*):\/\/(\[[\da-f:.]+\]|[\w.-]+)(:\d{1,5})?$/;

/**
 * Tells whether the text is an origin as browsers send it (RFC 6454, section 6.2). It is compared as it is, so a pattern
 * would match nothing. Apps have schemes of their own, of which browsers normalize no host.
 */
function isOrigin(text: string): boolean {
  const scheme = ORIGIN.exec(text)?.[1];
  if (scheme === undefined) return false;
  return !/^https?$/.test(scheme) || parseAbsoluteUrl(text)?.origin === text;
}

const TIME = /^(T([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d+)?)?(Z|[+-]([01]\d|2[0-3]):?[0-5]\d))?$/;

/** @returns undefined for what is neither a date nor a time with its offset, 30 February included */
export function parseMoment(text: string): Date | undefined {
  const isMoment = isCalendarDay(text.slice(0, 10)) && TIME.test(text.slice(10));
  return isMoment ? new Date(text) : undefined;
}
