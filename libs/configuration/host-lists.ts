import ipaddr from 'ipaddr.js';
import { isIP } from 'node:net';
import { isInRanges, parseRanges, type AddressRange } from './setting-decorators.js';

const NAME = /^\.?[a-z0-9_-]+(\.[a-z0-9_-]+)*$/;

/**
 * The push services of Chrome and browsers like it, of Chrome's test versions, Firefox, Safari and Edge, as names in a
 * list like NO_PROXY.
 */
export const PUSH_SERVICES = [
  'fcm.googleapis.com',
  'jmt17.google.com',
  '.push.services.mozilla.com',
  '.push.apple.com',
  '.notify.windows.com',
];

/** The hosts that are reached without the outgoing proxy. */
export type ProxyExceptions = {
  /** In lower case. One that begins with a dot stands for the names below it only. */
  names: string[];
  ranges: AddressRange[];
};

export const NO_EXCEPTIONS: ProxyExceptions = { names: [], ranges: [] };

/** Parses a list as in NO_PROXY: names, which include those below them, addresses and ranges. */
export function parseProxyExceptions(text: string): ProxyExceptions | undefined {
  const exceptions: ProxyExceptions = { names: [], ranges: [] };
  for (const entry of text.split(',').map((part) => part.trim().toLowerCase())) {
    const range = isIP(entry) === 0 ? entry : `${entry}/${isIP(entry) === 4 ? 32 : 128}`;
    const ranges = parseRanges(range);
    if (Array.isArray(ranges)) exceptions.ranges.push(...ranges);
    else if (isListableName(entry)) exceptions.names.push(entry);
    else return undefined;
  }
  return exceptions;
}

/** Tells whether a host, which is a name or an address, is reached without the proxy. */
export function isProxyException(host: string, { names, ranges }: ProxyExceptions): boolean {
  if (ipaddr.isValid(host)) {
    return isInRanges(ipaddr.process(host), ranges);
  }
  return isListedName(host, names);
}

/** Parses names of hosts, separated by commas. */
export function parseNames(text: string): string[] | undefined {
  const names = text.split(',').map((name) => name.trim().toLowerCase());
  return names.every(isListableName) ? names : undefined;
}

/** Tells whether a list may have the text as a name. Four numbers are a mistyped address. */
function isListableName(text: string): boolean {
  return NAME.test(text) && !/^[\d.]+$/.test(text);
}

/**
 * Tells whether a list as in NO_PROXY has a name. Its entries include the names below them; one that begins with a dot
 * stands for those only.
 * @param names in lower case
 */
export function isListedName(hostname: string, names: readonly string[]): boolean {
  const name = hostname.toLowerCase().replace(/\.$/, '');
  return names.some((listed) =>
    listed.startsWith('.') ? name.endsWith(listed) : name === listed || name.endsWith(`.${listed}`),
  );
}
