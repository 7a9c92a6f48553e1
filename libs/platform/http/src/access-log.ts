import { Logger } from '@nestjs/common';
import type { FastifyInstance } from 'fastify';
import type { PlatformConfig } from '#kernel/platform-config.js';
import type { AuthenticatedRequest } from './caller.js';
import { getLoggablePath } from './path.js';

/**
 * Logs one line per request: ids of the caller, and the address, which is the only personal data. Leaves out the
 * query, the token and every part of the path that could be a secret. Health probes are logged at debug level only.
 */
export function logAccess(
  server: FastifyInstance,
  { logLevel }: Pick<PlatformConfig, 'logLevel'>,
): void {
  if (!['info', 'debug'].includes(logLevel)) return;
  const log = new Logger('http');

  server.addHook('onResponse', (plain, reply, done) => {
    const request = plain as AuthenticatedRequest;
    const { method, requestId, originalUrl, routeOptions } = request;
    const path = getLoggablePath(originalUrl, routeOptions.url);
    const { statusCode, elapsedTime } = reply;
    const isProbe = path.startsWith('/health');
    log[isProbe ? 'debug' : 'log'](`${method} ${path} ${statusCode}`, {
      request_id: requestId,
      status: statusCode,
      milliseconds: Math.round(elapsedTime * 10) / 10,
      ip: request.ipAddress,
      token_id: request.caller?.tokenId,
      admin_token_id: request.adminCaller?.tokenId,
      ...request.sessionIds,
      account_id: request.accountId,
      refusal: request.refusal,
    });
    done();
  });
}
