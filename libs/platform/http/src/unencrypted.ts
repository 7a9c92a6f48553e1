import type { IncomingHttpHeaders } from 'node:http';
import { ForbiddenError } from '#kernel/errors.js';

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

/** Reports a request in clear. A redirect would let its client go on sending the token so, and nobody would notice. */
export class UnencryptedError extends ForbiddenError {
  constructor(publicUrl: string) {
    super(
      'This is only available over https',
      `Send requests to ${publicUrl}. If this one had a token, it has crossed the network in clear: revoke it and create another.`,
    );
  }
}
