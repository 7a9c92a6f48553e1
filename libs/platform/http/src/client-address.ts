import ipaddr from 'ipaddr.js';
import { isIP, isIPv4 } from 'node:net';

/**
 * Parses an entry of X-Forwarded-For. Some proxies add the port, which differs for each connection, and some a zone.
 * Anything else may be an arbitrary text.
 */
export function parseIpAddress(entry: string): ipaddr.IPv4 | ipaddr.IPv6 | undefined {
  const text = entry.trim().replace(/^"(.*)"$/, '$1');
  const host = /^\[([^\]]*)\](?::\d*)?$/.exec(text)?.[1] ?? text.replace(/^([\d.]+):\d*$/, '$1');
  const [address = ''] = host.split('%', 1);
  return isIP(address) === 0 ? undefined : ipaddr.process(address);
}

/**
 * Renders the address of a client for the logs, without its port.
 * @param ip undefined, whatever Fastify's types say, once the client has disconnected
 * @returns undefined for anything but an address
 */
export function readClientAddress(ip: string | undefined): string | undefined {
  if (ip === undefined) return undefined;
  return isIPv4(ip) ? ip : parseIpAddress(ip)?.toString();
}
