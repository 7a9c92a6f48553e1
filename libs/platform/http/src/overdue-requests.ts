import type { FastifyInstance, FastifyReply } from 'fastify';
import { UnknownOutcomeError } from '#kernel/errors.js';
import { SAFE_METHODS } from './caller.js';
import type { AuthenticatedRequest } from './caller.js';
import type { ErrorsFilter } from './errors.filter.js';

/** A little less than the 30 s of ERR-21, because requests are checked at intervals. */
const OUTCOME_TIMEOUT_MS = 29_000;
const CHECK_INTERVAL_MS = 500;
/** A request that takes longer until its handler runs was sent slowly. */
const SLOW_UPLOAD_MS = 8_000;

/**
 * Closes the connection of writes whose outcome is unknown 30 s after their request (ERR-21), however many steps have
 * waited one after another. The time in which a large body arrives does not count.
 */
export function endOverdueRequests(server: FastifyInstance, errors: ErrorsFilter): void {
  const pending = new Map<FastifyReply, number>();
  server.addHook('preValidation', (request, reply, done) => {
    if (!SAFE_METHODS.has(request.method)) {
      const { elapsedTime } = reply;
      pending.set(reply, OUTCOME_TIMEOUT_MS + (elapsedTime > SLOW_UPLOAD_MS ? elapsedTime : 0));
      reply.raw.once('close', () => pending.delete(reply));
    }
    done();
  });
  const timer = setInterval(() => {
    for (const [reply, dueMs] of pending) {
      if (reply.elapsedTime < dueMs || reply.sent || reply.raw.headersSent) continue;
      pending.delete(reply);
      const error = new UnknownOutcomeError('the outcome is not known after 30 s');
      errors.respond(error, reply.request as AuthenticatedRequest, reply);
    }
  }, CHECK_INTERVAL_MS);
  timer.unref();
  server.addHook('onClose', (_server, done) => {
    clearInterval(timer);
    done();
  });
}
