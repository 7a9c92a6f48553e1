import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { getNow } from '#kernel/clock.js';
import type { PlatformConfig } from '#kernel/platform-config.js';
import {
  ForbiddenError,
  NotFoundError,
  RateLimitedError,
  UnauthorizedError,
} from '#kernel/errors.js';
import {
  assertMayWrite,
  readBearerToken,
  type Authenticator,
  type Caller,
  type AuthenticatedRequest,
} from './caller.js';
import { enterAccount, shareDatabase } from './database-share.js';
import { getOperation } from './endpoint.js';
import { countFields } from './headers.js';
import type { HttpMetrics } from './http-metrics.js';
import { API, findPathId, isAdminRoute, isApiRoute, getRoute } from './path.js';
import { renderLimitHeaders, RateLimits, type Usage } from './rate-limit.js';
import { getThrottle, getWork } from './throttle.js';
import { isUnencrypted, UnencryptedError } from './unencrypted.js';
import type { Counts } from './throttler-storage.js';
import {
  isRetired,
  renderRetirementHeaders,
  toVersioningJson,
  VersionSunsetError,
} from './versioning.js';

const STATUS = `${API}/status`;

/**
 * Decides everything that precedes reading a body, in this order: retired version (VER-09), limit per address for
 * callers without a valid token (LIMIT-12), token (CONV-35), limits of token and account (LIMIT-13), account
 * (CONV-36), role, read-only token (TOKEN-09). A hook and not a guard of Nest: those run after the body was parsed, and unknown routes must carry
 * the headers too. Once the body is parsed, the rest of its work is counted, before anything of it is done (BATCH-09).
 */
export class RequestGuard {
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
    server.addHook('onRequest', (request, reply, done) => {
      // Of several the first would count here, and perhaps another one in a proxy: none of them does.
      if (countFields(request.raw, 'authorization') > 1) delete request.headers.authorization;
      if (isForPrograms(request) && isUnencrypted(request.headers, this.config)) {
        (request as AuthenticatedRequest).refusal = 'unencrypted';
        return done(new UnencryptedError(this.config.publicUrl));
      }
      // The admin API has a guard of its own.
      if (isAdminRoute(getRoute(request))) return done();
      const admission = isApi(request)
        ? this.guardApi(request as AuthenticatedRequest, reply)
        : this.guardPage(request);
      admission.then(() => done(), done);
    });
    server.addHook('preValidation', (request, reply, done) => {
      const work = getWork(request);
      if (work === 1) return done();
      this.countWork(request as AuthenticatedRequest, reply, work).then(() => done(), done);
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

  /** Limits requests outside the API per IP address, except on routes with their own limit or none. */
  private async guardPage(request: FastifyRequest): Promise<void> {
    if (getThrottle(request) === false) return;
    this.assertWithinLimit(await this.limits.countPage(request.ip, { own: getOwnLimit(request) }));
  }

  /** Counts the work of a request beyond that of one. A request that exceeds a limit by it has counted once. */
  private async countWork(
    request: AuthenticatedRequest,
    reply: FastifyReply,
    work: number,
  ): Promise<void> {
    const { caller, accountId, ip } = request;
    const own = getOwnLimit(request);
    const usage = caller
      ? await this.limits.countToken(caller, { own, accountId, work })
      : await this.limits.countPage(ip, { own, work });
    if (caller) reply.headers(renderLimitHeaders(usage));
    this.assertWithinLimit(usage);
  }

  /** Checks an API request. */
  private async guardApi(request: AuthenticatedRequest, reply: FastifyReply): Promise<void> {
    reply.header('cache-control', 'no-store');
    if (isRetired(this.config, getNow())) await this.refuseAsRetired(request, reply);
    const caller = await this.identify(request, reply);
    if (caller) request.caller = caller;
    const account = findAccountParam(request);
    const accountId = account === undefined ? undefined : findPathId(account);
    const isKnown = this.isKnown(caller, accountId);
    const usage = await this.count(request, caller, isKnown ? accountId : undefined);
    reply.headers(renderLimitHeaders(usage));
    this.assertWithinLimit(usage);
    if (isStatus(request)) return;
    if (!caller) throw new UnauthorizedError();
    if (account === undefined) {
      shareDatabase(request, `principal ${caller.principalId}`);
      return assertMayWrite(request, caller);
    }
    if (accountId === undefined) throw new NotFoundError(this.authenticator.accountName);
    const refusal = await this.authenticator.findRefusal(caller, accountId, getOperation(request));
    if (refusal === 'not_found') throw new NotFoundError(this.authenticator.accountName);
    if (!isKnown) await this.countForAccount(accountId, reply);
    enterAccount(request, accountId);
    if (refusal !== 'forbidden') return assertMayWrite(request, caller);
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
  ): Promise<Usage> {
    const own = getOwnLimit(request);
    return caller
      ? this.limits.countToken(caller, { own, accountId })
      : this.limits.countAddress(request.ip, { own });
  }

  /** Counts the first request after a change of rights: only now the caller is known to belong to the account. */
  private async countForAccount(accountId: number, reply: FastifyReply): Promise<void> {
    const usage = await this.limits.countAccount(accountId);
    if (usage.isExceeded) reply.headers(renderLimitHeaders(usage));
    this.assertWithinLimit(usage);
  }

  private assertWithinLimit({ isExceeded, resetSeconds, scope }: Usage): void {
    if (!isExceeded) return;
    this.metrics.countRateLimited(scope);
    throw new RateLimitedError(resetSeconds);
  }

  private async refuseAsRetired(
    request: AuthenticatedRequest,
    reply: FastifyReply,
  ): Promise<never> {
    await this.countAddress(request, reply);
    throw new VersionSunsetError(toVersioningJson(this.config, getNow()));
  }

  /** Authenticates the caller. The headers are sent even when the lookup itself fails. */
  private async identify(
    request: AuthenticatedRequest,
    reply: FastifyReply,
  ): Promise<Caller | undefined> {
    const token = readBearerToken(request);
    if (token === undefined) return undefined;
    try {
      return await this.authenticator.authenticate(token);
    } catch (error) {
      await this.countAddress(request, reply);
      throw error;
    }
  }

  /**
   * Counts a preflight. It gets its response before the request guard: if it were refused, the script could not see why. It
   * counts against the address, since it never carries a token.
   */
  private async countPreflight(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    reply.header('cache-control', 'no-store');
    await this.countAddress(request, reply);
  }

  private announceRetirement(reply: FastifyReply): void {
    const { link, ...dates } = renderRetirementHeaders(this.config);
    if (link === undefined) return;
    const own = reply.getHeader('link');
    reply.headers({ ...dates, link: own === undefined ? link : `${String(own)}, ${link}` });
  }

  private async countAddress(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    reply.headers(renderLimitHeaders(await this.limits.countAddress(request.ip)));
  }
}

function isApi(request: FastifyRequest): boolean {
  return isApiRoute(getRoute(request));
}

/** Tells whether a request is one that programs send, and not people in front of a browser. */
function isForPrograms(request: FastifyRequest): boolean {
  return (
    isApi(request) || isAdminRoute(getRoute(request)) || request.headers.authorization !== undefined
  );
}

function getOwnLimit(request: FastifyRequest) {
  const limit = getThrottle(request);
  return limit ? { route: getRoute(request), limit } : undefined;
}

/** Tells whether the path is that of the status, for whatever method. */
function isStatus(request: FastifyRequest): boolean {
  return getRoute(request).replace(/\/$/, '') === STATUS;
}

/** Finds the account of the path, as it is written there. */
function findAccountParam({ params }: FastifyRequest): string | undefined {
  if (typeof params !== 'object' || params === null || !('account_id' in params)) return undefined;
  return String(params.account_id);
}
