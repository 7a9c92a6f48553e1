import http from 'node:http';
import https from 'node:https';
import { isIPv6, type Socket } from 'node:net';
import type { OutboundProxy } from '#configuration/setting-decorators.js';

/** Thrown when the outgoing proxy opened no tunnel. */
export class ProxyError extends Error {
  constructor(
    readonly code: 'PROXY_UNREACHABLE' | 'PROXY_REFUSED' | 'EHOSTUNREACH' | 'ETIMEDOUT',
    cause?: unknown,
  ) {
    super(`the outgoing proxy opened no tunnel (${code})`, { cause });
  }
}

/** The statuses of a proxy that could not reach the host. */
const UNREACHABLE_STATUSES = new Set([502, 503, 504]);

/**
 * Opens a tunnel through the outgoing proxy (RFC 9110, section 9.3.6).
 * @param host a name or an address
 * @throws ProxyError
 */
export function openTunnel(
  proxy: OutboundProxy,
  host: string,
  port: number,
  timeoutMs: number,
): Promise<Socket> {
  const authority = `${isIPv6(host) ? `[${host}]` : host}:${port}`;
  return new Promise((resolve, reject) => {
    const request = (proxy.tls ? https : http).request({
      host: proxy.host,
      port: proxy.port,
      method: 'CONNECT',
      path: authority,
      headers: { host: authority, ...toAuthorization(proxy) },
      agent: false,
    });
    const timer = setTimeout(() => request.destroy(new ProxyError('ETIMEDOUT')), timeoutMs);
    request.on('connect', ({ statusCode = 0 }, socket: Socket, head) => {
      clearTimeout(timer);
      if (statusCode >= 200 && statusCode < 300) {
        if (head.length > 0) socket.unshift(head);
        resolve(socket);
        return;
      }
      socket.destroy();
      const isUnreachable = UNREACHABLE_STATUSES.has(statusCode);
      reject(new ProxyError(isUnreachable ? 'EHOSTUNREACH' : 'PROXY_REFUSED'));
    });
    request.on('error', (error) => {
      clearTimeout(timer);
      reject(error instanceof ProxyError ? error : new ProxyError('PROXY_UNREACHABLE', error));
    });
    request.end();
  });
}

function toAuthorization({ login }: OutboundProxy): Record<string, string> {
  if (login === null) return {};
  const credentials = Buffer.from(`${login.user}:${login.password}`).toString('base64');
  return { 'proxy-authorization': `Basic ${credentials}` };
}
