import { Logger } from '@nestjs/common';
import type { FastifyInstance } from 'fastify';
import type { PlatformConfig } from '#platform/kernel/platform-config.js';
import { abbreviateKey } from '#platform/event-store/commands/stored-responses.js';
import type { AuthenticatedRequest } from './caller.js';
import type { OpenRequest } from './open-requests.js';
import { getLoggablePath } from './path.js';

/**
 * Logs one line per request: ids of the caller, and the address, which is the only personal data. Leaves out the query, the token and every part of the path that could be a secret (ADR-0090).
 * Health probes are logged at debug level only.
 */
export function logAccess(
  server: FastifyInstance,
  { logLevel }: Pick<PlatformConfig, 'logLevel'>,
): void {
  if (!['info', 'debug'].includes(logLevel)) return;
  const log = new Logger('http');
  server.addHook('onResponse', (plain, reply, done) => {
    const request = plain as OpenRequest;
    const { method, requestId, originalUrl, routeOptions, raw, sentBefore } = request;
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
      denial: request.denial,
      actor: renderActor(request),
      idempotency_key: request.idempotencyKey && abbreviateKey(request.idempotencyKey),
      bytes: sentBefore === undefined ? undefined : raw.socket.bytesWritten - sentBefore,
      database_ms: Math.round((request.wait?.milliseconds ?? 0) * 10) / 10,
    });
    done();
  });
}

/** Renders who acted, as the audit log names them: `token 12`, or who has the session. */
function renderActor({
  caller,
  adminCaller,
  sessionIds = {},
}: AuthenticatedRequest): string | undefined {
  if (caller) return `token ${caller.tokenId}`;
  if (adminCaller) return `admin_token ${adminCaller.tokenId}`;
  const [owner] = Object.entries(sessionIds);
  return owner && `${owner[0].replace(/_id$/, '')} ${owner[1]}`;
}
