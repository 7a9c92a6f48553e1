import ipaddr from 'ipaddr.js';
import { isIP } from 'node:net';
import { isListableName, isListedName } from './name-lists.js';
import { Setting } from '#kernel/setting-decorators.js';
import { isInRanges, parseRanges, type AddressRange } from './setting-decorators.js';

/** The hosts that are reached without the outgoing proxy. */
export type ProxyExceptions = {
  /** In lower case. One that begins with a dot stands for the names below it only. */
  names: string[];
  ranges: AddressRange[];
};

export const NO_EXCEPTIONS: ProxyExceptions = { names: [], ranges: [] };

export function ProxyExceptionList(): PropertyDecorator {
  return Setting(parseProxyExceptions, 'must be names, addresses or ranges, separated by commas');
}

/** Parses a list as in NO_PROXY: names, which include those below them, addresses and ranges. */
export function parseProxyExceptions(text: string): ProxyExceptions | undefined {
  const exceptions: ProxyExceptions = { names: [], ranges: [] };
  for (const entry of text.split(',').map((one) => one.trim().toLowerCase())) {
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
