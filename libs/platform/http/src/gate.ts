import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Config } from '#kernel/config.js';
import { NotFoundError, RateLimitedError, UnauthorizedError } from '#kernel/errors.js';
import type { Authenticator, Caller, GatedRequest } from './caller.js';
import type { HttpMetrics } from './http-metrics.js';
import { pathId, routeOf } from './path.js';
import { addressKey, RateLimit, WINDOW_SECONDS, type Counts, type Usage } from './rate-limit.js';
import { isRetired, retirementHeaders, versioningJson, VersionSunsetError } from './versioning.js';

export const API = '/api/v1';
const STATUS = `${API}/status`;
const HEALTH = '/health';

/**
 * Everything that is decided before a body is read, in the contract's order (section 1): retired
 * version, limit per IP for callers without a valid token, token, limit per token, store. A hook and
 * not a guard, because Nest's guards run after the body was parsed, and because unknown routes must
 * carry the headers too. Outside the API there is a limit per IP, and none for health checks.
 */
export function installGate(
  server: FastifyInstance,
  authenticator: Authenticator,
  counts: Counts,
  config: Config,
  metrics: HttpMetrics,
): void {
  const limits = new RateLimit(counts);
  const countAddress = (request: FastifyRequest) =>
    limits.count(`ip ${addressKey(request.ip)}`, config.rateLimitPerMinute);

  server.addHook('onRequest', async (plain: FastifyRequest, reply: FastifyReply) => {
    const request = plain as GatedRequest;
    const route = routeOf(request);
    if (isBelow(HEALTH, route)) return;
    if (!isBelow(API, route)) {
      const key = `page ${addressKey(request.ip)}`;
      const usage = await limits.count(key, config.pageRateLimitPerMinute);
      if (usage.exceeded) metrics.limitedBy('page_address');
      refuseBeyond(usage, reply);
      return;
    }

    reply.header('cache-control', 'no-store');
    const now = new Date();
    if (isRetired(config, now)) {
      sendLimits(reply, await countAddress(request));
      throw new VersionSunsetError(versioningJson(config, now));
    }
    const caller = await callerOf(request, authenticator).catch(async (error: unknown) => {
      sendLimits(reply, await countAddress(request));
      throw error;
    });
    if (caller) request.caller = caller;
    const usage = caller
      ? await limits.count(`token ${caller.tokenId}`, caller.perMinute ?? config.rateLimitPerMinute)
      : await countAddress(request);
    sendLimits(reply, usage);
    if (usage.exceeded) metrics.limitedBy(caller ? 'token' : 'address');
    refuseBeyond(usage, reply);
    if (route === STATUS) return;
    if (!caller) throw new UnauthorizedError();

    const accountId = accountIdOf(request);
    if (accountId === undefined) return;
    if (!(await authenticator.reaches(caller, accountId))) throw new NotFoundError('Store');
    request.accountId = accountId;
  });

  // A preflight is answered before the gate: refused, it would hide from the script why. It counts all the
  // same, for the address, since it never has a token.
  server.addHook('onSend', async (request: FastifyRequest, reply: FastifyReply) => {
    if (!isBelow(API, routeOf(request)) || reply.hasHeader('ratelimit-limit')) return;
    reply.header('cache-control', 'no-store');
    sendLimits(reply, await countAddress(request));
  });

  const { link, ...dates } = retirementHeaders(config);
  if (link === undefined) return;
  // At the very end: a list has set its own Link by then.
  server.addHook('onSend', async (request: FastifyRequest, reply: FastifyReply) => {
    if (!isBelow(API, routeOf(request))) return;
    const own = reply.getHeader('link');
    reply.headers({ ...dates, link: own === undefined ? link : `${String(own)}, ${link}` });
  });
}

function isBelow(folder: string, route: string): boolean {
  return route === folder || route.startsWith(`${folder}/`);
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

function refuseBeyond({ exceeded, resetSeconds }: Usage, reply: FastifyReply): void {
  if (!exceeded) return;
  reply.header('retry-after', resetSeconds);
  throw new RateLimitedError(resetSeconds);
}
