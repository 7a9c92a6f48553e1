import http from 'node:http';
import https from 'node:https';
import { isIPv6, type Socket } from 'node:net';
import type { ServerAccess } from '#configuration/setting-decorators.js';
import { USER_AGENT } from './user-agent.js';

type ProxyErrorCode = 'PROXY_UNREACHABLE' | 'PROXY_REFUSED' | 'EHOSTUNREACH' | 'ETIMEDOUT';

/** Thrown when the outgoing proxy opened no tunnel. The message contains no address and no password. */
export class ProxyError extends Error {
  constructor(
    readonly code: ProxyErrorCode,
    reason: string = code,
    cause?: unknown,
  ) {
    super(`the outgoing proxy opened no tunnel (${reason})`, { cause });
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
  proxy: ServerAccess,
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
      headers: { host: authority, 'user-agent': USER_AGENT, ...toAuthorization(proxy) },
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
      const code = UNREACHABLE_STATUSES.has(statusCode) ? 'EHOSTUNREACH' : 'PROXY_REFUSED';
      reject(new ProxyError(code, describeStatus(statusCode)));
    });
    request.on('error', (error) => {
      const { code } = error as NodeJS.ErrnoException;
      reject(
        error instanceof ProxyError ? error : new ProxyError('PROXY_UNREACHABLE', code, error),
      );
    });
    // Also after a response that is none to CONNECT, such as an upgrade.
    request.on('close', () => {
      clearTimeout(timer);
      reject(new ProxyError('PROXY_REFUSED'));
    });
    request.end();
  });
}

function describeStatus(status: number): string {
  return status === 407
    ? 'it responded with 407: check the name and password in OUTBOUND_PROXY_URL'
    : `it responded with ${status}`;
}

function toAuthorization({ login }: ServerAccess): Record<string, string> {
  if (login === null) return {};
  const credentials = Buffer.from(`${login.user}:${login.password}`).toString('base64');
  return { 'proxy-authorization': `Basic ${credentials}` };
}
