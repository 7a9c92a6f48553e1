import ipaddr from 'ipaddr.js';
import type { IncomingHttpHeaders } from 'node:http';
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

/**
 * Tells whether a request came over plain http to a proxy of ours, although the service is public over https.
 * @param hops the number of proxies in front; each may add the protocol in which it got the request
 */
export function isUnencrypted(
  headers: IncomingHttpHeaders,
  { publicUrl, trustProxyHops: hops }: { publicUrl: string; trustProxyHops: number },
): boolean {
  const forwarded = headers['x-forwarded-proto'];
  // Without a header the request is from inside: a health check, or another service.
  if (hops === 0 || forwarded === undefined || !publicUrl.startsWith('https:')) return false;
  const protocols = [forwarded].flat().join().split(',');
  // What lies before the entry of the outermost of these proxies may come from anybody.
  return protocols[Math.max(0, protocols.length - hops)]?.trim().toLowerCase() === 'http';
}
