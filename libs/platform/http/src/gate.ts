import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { PlatformConfig } from '#kernel/platform-config.js';
import {
  ForbiddenError,
  NotFoundError,
  RateLimitedError,
  UnauthorizedError,
} from '#kernel/errors.js';
import type { Authenticator, Caller, GatedRequest } from './caller.js';
import { operationOf } from './endpoint.js';
import { countFields } from './headers.js';
import type { HttpMetrics } from './http-metrics.js';
import { API, isApiRoute, pathId, routeOf } from './path.js';
import { limitHeaders, RateLimits, type Usage } from './rate-limit.js';
import { throttleOf } from './throttle.js';
import type { Counts } from './throttler-storage.js';
import { isRetired, retirementHeaders, versioningJson, VersionSunsetError } from './versioning.js';

const STATUS = `${API}/status`;

/**
 * Everything that is decided before a body is read, in the contract's order (section 1): retired
 * version, limit per IP for callers without a valid token, token, limit per token and per account, account, role. A hook and
 * not a guard, because Nest's guards run after the body was parsed, and because unknown routes must
 * carry the headers too.
 */
export class Gate {
  private readonly limits: RateLimits;

  constructor(
    counts: Counts,
    private readonly authenticator: Authenticator,
    private readonly metrics: HttpMetrics,
    private readonly config: PlatformConfig,
  ) {
    this.limits = new RateLimits(counts, config);
  }

  install(server: FastifyInstance): void {
    server.addHook('onRequest', async (request, reply) => {
      // Of several the first would count here, and perhaps another one in a proxy: none of them does.
      if (countFields(request.raw, 'authorization') > 1) delete request.headers.authorization;
      if (isApi(request)) await this.admitToApi(request as GatedRequest, reply);
      else await this.admitToPages(request);
    });
    server.addHook('onSend', (request, reply, payload, done) => {
      if (reply.hasHeader('ratelimit-limit') || !isApi(request)) return done(null, payload);
      this.countPreflight(request, reply).then(() => done(null, payload), done);
    });
    if (this.config.v1.deprecatedAt === null) return;
    // onSend runs last: by then a list has set its own Link.
    server.addHook('onSend', (request, reply, payload, done) => {
      if (isApi(request)) this.announceRetirement(reply);
      done(null, payload);
    });
  }

  /** Outside the API each IP address has one limit, except on routes that set another or skip it. */
  private async admitToPages(request: FastifyRequest): Promise<void> {
    if (throttleOf(request) === false) return;
    this.refuseBeyond(await this.limits.ofPages(request.ip, ownLimit(request)));
  }

  /** Waits only for what has to be looked up, which for most requests is nothing. */
  private async admitToApi(request: GatedRequest, reply: FastifyReply): Promise<void> {
    reply.header('cache-control', 'no-store');
    if (isRetired(this.config, new Date())) await this.refuseAsRetired(request, reply);
    const found = this.identify(request, reply);
    const caller = found instanceof Promise ? await found : found;
    if (caller) request.caller = caller;
    const accountId = accountIdOf(request);
    const isKnown = this.isKnown(caller, accountId);
    const counted = this.count(request, caller, isKnown ? accountId : undefined);
    const usage = counted instanceof Promise ? await counted : counted;
    reply.headers(limitHeaders(usage));
    this.refuseBeyond(usage);
    if (routeOf(request) === STATUS) return;
    if (!caller) throw new UnauthorizedError();
    if (accountId === undefined) return;
    const judged = this.authenticator.refusal(caller, accountId, operationOf(request));
    const refusal = judged instanceof Promise ? await judged : judged;
    if (refusal === 'not_found') throw new NotFoundError(this.authenticator.accountName);
    if (!isKnown) await this.countForAccount(accountId, reply);
    request.accountId = accountId;
    if (refusal !== 'forbidden') return;
    request.refusal = 'role';
    throw new ForbiddenError();
  }
  private isKnown(caller: Caller | undefined, accountId: number | undefined): boolean {
    if (caller === undefined || accountId === undefined) return false;
    return this.authenticator.isKnownIn(caller, accountId);
  }

  private count(
    request: FastifyRequest,
    caller: Caller | undefined,
    accountId: number | undefined,
  ): Usage | Promise<Usage> {
    const own = ownLimit(request);
    return caller
      ? this.limits.ofToken(caller, own, accountId)
      : this.limits.ofAddress(request.ip, own);
  }

  /** Counts the first request after a change of rights: only now the caller is known to be of the account. */
  private async countForAccount(accountId: number, reply: FastifyReply): Promise<void> {
    const usage = await this.limits.ofAccount(accountId);
    if (usage.exceeded) reply.headers(limitHeaders(usage));
    this.refuseBeyond(usage);
  }

  private refuseBeyond({ exceeded, resetSeconds, scope }: Usage): void {
    if (!exceeded) return;
    this.metrics.limitedBy(scope);
    throw new RateLimitedError(resetSeconds);
  }

  private async refuseAsRetired(request: GatedRequest, reply: FastifyReply): Promise<never> {
    await this.countAddress(request, reply);
    throw new VersionSunsetError(versioningJson(this.config, new Date()));
  }

  /** The headers are sent even when the look-up itself fails. */
  private identify(
    request: GatedRequest,
    reply: FastifyReply,
  ): Caller | undefined | Promise<Caller | undefined> {
    const token = /^Bearer +(\S+) *$/i.exec(request.headers.authorization ?? '')?.[1];
    if (token === undefined) return undefined;
    const found = this.authenticator.callerOf(token);
    if (!(found instanceof Promise)) return found;
    return found.catch(async (error: unknown) => {
      await this.countAddress(request, reply);
      throw error;
    });
  }

  /**
   * Preflights are answered before the gate: if one were refused, the script could not see why. It still
   * counts, against the address, since it never carries a token.
   */
  private async countPreflight(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    reply.header('cache-control', 'no-store');
    await this.countAddress(request, reply);
  }

  private announceRetirement(reply: FastifyReply): void {
    const { link, ...dates } = retirementHeaders(this.config);
    if (link === undefined) return;
    const own = reply.getHeader('link');
    reply.headers({ ...dates, link: own === undefined ? link : `${String(own)}, ${link}` });
  }

  private async countAddress(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    reply.headers(limitHeaders(await this.limits.ofAddress(request.ip)));
  }
}

function isApi(request: FastifyRequest): boolean {
  return isApiRoute(routeOf(request));
}

function ownLimit(request: FastifyRequest) {
  const limit = throttleOf(request);
  return limit ? { route: routeOf(request), limit } : undefined;
}

function accountIdOf({ params }: FastifyRequest): number | undefined {
  if (typeof params !== 'object' || params === null || !('account_id' in params)) return undefined;
  return pathId(String(params.account_id));
}
