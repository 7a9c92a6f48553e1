import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Config } from '#kernel/config.js';
import { NotFoundError, RateLimitedError, UnauthorizedError } from '#kernel/errors.js';
import { newId } from '#kernel/randomness.js';
import { pathId } from './body.js';
import type { Authenticator, Caller, GatedRequest } from './caller.js';
import { RateLimit, WINDOW_SECONDS, type Usage } from './rate-limit.js';

export const API = '/api/v1';
const STATUS = `${API}/status`;

/**
 * Everything that is decided before a body is read, in the contract's order (section 1): limit per IP
 * for callers without a valid token, token, limit per token, store. A hook and not a guard, because
 * Nest's guards run after the body was parsed, and because unknown routes must carry the headers too.
 */
export function installGate(
  server: FastifyInstance,
  authenticator: Authenticator,
  config: Config,
): void {
  const limits = new RateLimit();

  server.addHook('onRequest', async (plain: FastifyRequest, reply: FastifyReply) => {
    const request = plain as GatedRequest;
    request.requestId = requestIdOf(request);
    reply.header('x-request-id', request.requestId);
    const path = request.url.split('?', 1)[0] ?? '';
    if (path !== API && !path.startsWith(`${API}/`)) return;

    reply.header('cache-control', 'no-store');
    const caller = await callerOf(request, authenticator);
    const usage = caller
      ? await limits.count(`token ${caller.tokenId}`, caller.perMinute ?? config.rateLimitPerMinute)
      : await limits.count(`ip ${request.ip}`, config.rateLimitPerMinute);
    sendLimits(reply, usage);
    if (usage.exceeded) {
      reply.header('retry-after', usage.resetSeconds);
      throw new RateLimitedError(usage.resetSeconds);
    }
    if (path === STATUS) return;
    if (!caller) throw new UnauthorizedError();
    request.caller = caller;

    const accountId = accountIdOf(request);
    if (accountId === undefined) return;
    if (!(await authenticator.reaches(caller, accountId))) throw new NotFoundError('Store');
    request.accountId = accountId;
  });
}

async function callerOf(
  request: FastifyRequest,
  authenticator: Authenticator,
): Promise<Caller | undefined> {
  const token = /^Bearer +(\S+) *$/i.exec(request.headers.authorization ?? '')?.[1];
  return token === undefined ? undefined : authenticator.callerOf(token);
}

function accountIdOf({ params }: FastifyRequest): number | undefined {
  if (typeof params !== 'object' || params === null || !('account_id' in params)) return undefined;
  return pathId(String(params.account_id));
}

/** The four fields of draft revisions 04 to 06; Reset counts seconds, it is no point in time. */
function sendLimits(reply: FastifyReply, { limit, remaining, resetSeconds }: Usage): void {
  reply.header('ratelimit-limit', limit);
  reply.header('ratelimit-remaining', remaining);
  reply.header('ratelimit-reset', resetSeconds);
  reply.header('ratelimit-policy', `${limit};w=${WINDOW_SECONDS}`);
}

function requestIdOf({ headers }: FastifyRequest): string {
  const given = headers['x-request-id'];
  return typeof given === 'string' && /^[A-Za-z0-9._-]{1,128}$/.test(given) ? given : newId();
}
