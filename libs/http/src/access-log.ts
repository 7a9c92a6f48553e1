import { Logger } from '@nestjs/common';
import type { FastifyInstance } from 'fastify';
import type { GatedRequest } from './caller.js';
import { pathOf } from './path.js';

/** One line a request. Neither query nor token: both may be secret. Probes stay out of sight. */
export function logAccess(server: FastifyInstance): void {
  const log = new Logger('http');

  server.addHook('onResponse', async (plain, reply) => {
    const request = plain as GatedRequest;
    const { method, requestId, caller, originalUrl } = request;
    const path = pathOf(originalUrl);
    const token = caller ? ` token=${caller.tokenId}` : '';
    const line = `${method} ${path} ${reply.statusCode} ${reply.elapsedTime.toFixed(1)}ms request=${requestId}${token}`;
    if (path.startsWith('/health')) log.debug(line);
    else log.log(line);
  });
}
