import { NotFoundException } from '@nestjs/common';
import type {
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  preValidationHookHandler,
} from 'fastify';
import type { Awaitable } from '#platform/kernel/awaitable.js';
import { getNow } from '#platform/kernel/clock.js';
import type { PlatformConfig } from '#platform/kernel/platform-config.js';
import {
  CatalogueError,
  ForbiddenError,
  MaintenanceError,
  NotFoundError,
  RateLimitedError,
  UnauthorizedError,
} from '#platform/kernel/errors.js';
import type { AccountOwners } from '#platform/event-store/commands/account-owners.service.js';
import type { Maintenance, MaintenanceRow } from '#platform/database/maintenance.service.js';
import {
  assertMayWrite,
  readBearerToken,
  SAFE_METHODS,
  type AccountDenial,
  type Authenticator,
  type Caller,
  type AuthenticatedRequest,
} from './caller.js';
import { isUnencrypted } from './client-address.js';
import { shareDatabase } from './database-share.js';
import { countFields } from './headers.js';
import type { HttpMetrics } from './http-metrics.js';
import { respondToMethod, RouteTable } from './methods.js';
import { findPathId } from './path.js';
import { renderLimitHeaders, RateLimits, type Usage } from './rate-limit.js';
import { createRouteAccess, getRouteAccess, type RouteAccess } from './route-access.js';
import type { RouteThrottle } from './throttle.js';
import type { Counts } from './throttler-storage.js';
import {
  isRetired,
  renderRetirementHeaders,
  toVersioningJson,
  VersionSunsetError,
} from './versioning.js';

/** RFC 3986, section 3.2.2, and a port. */
const HOST = /^(\[[\da-f:.%]+\]|[\w.~!$&'()*+,;=%-]*)(:\d*)?$/i;

/** Decides on the requests of an area that has tokens of its own. */
type AreaGuard = {
  guard: (request: AuthenticatedRequest, reply: FastifyReply, limits: RateLimits) => Promise<void>;
};

type Parts = {
  counts: Counts;
  authenticator: Authenticator;
  adminGuard: AreaGuard;
  maintenance: Maintenance;
  metrics: HttpMetrics;
  owners: AccountOwners;
};

/**
 * Decides everything that precedes reading a body, in this order: retired version (VER-09), limit per address for
 * callers without a valid token (LIMIT-12), token (CONV-35), limits of token and account (LIMIT-13), account
 * (CONV-36), role, read-only token (TOKEN-09); then, so that these responses count like any other: the header Host, the
 * method, whether the settings make the route available, maintenance (MAINT-01). A hook and not a guard of Nest: those run
 * after the body was parsed, and unknown routes must carry the headers too. Once the body is parsed and its unknown fields
 * are named, which failures show as well (CONV-43), the rest of its work is counted, before any of it is executed (BATCH-19).
 */
export class RequestGuard {
  private readonly limits: RateLimits;
  private readonly routes = new RouteTable();

  constructor(
    private readonly parts: Parts,
    private readonly config: PlatformConfig,
  ) {
    this.limits = new RateLimits(parts.counts, config);
  }

  install(server: FastifyInstance): void {
    server.addHook('onRoute', (route) => {
      for (const method of [route.method].flat()) this.routes.add(route.url, method);
      // One for all paths says nothing of the path.
      if (route.url === '*') return;
      const { countWork, ...config }: RouteThrottle = route.config ?? {};
      const access = createRouteAccess(route.url, config, this.config);
      route.config = Object.assign({}, config, { access });
      if (!countWork) return;
      const count: preValidationHookHandler = (request, reply, done) => {
        const work = countWork(request.body);
        if (work === 1) return done();
        this.countWork(request as AuthenticatedRequest, reply, work).then(() => done(), done);
      };
      route.preValidation = [route.preValidation ?? []].flat().concat(count);
    });
    server.addHook('onRequest', (request, reply, done) => {
      const access = getRouteAccess(request);
      const admission = this.guard(request as AuthenticatedRequest, reply, access);
      const decision = admission
        ? admission.then(() => this.decide(request, reply, access))
        : this.decide(request, reply, access);
      if (decision instanceof Promise) decision.then((isAdmitted) => isAdmitted && done(), done);
      else if (decision) done();
    });
    if (this.config.corsOrigins.length > 0) this.countPreflights(server);
    if (this.config.v1.deprecatedAt === null) return;
    // onSend runs last: by then a list has set its own Link.
    server.addHook('onSend', (request, reply, payload, done) => {
      if (this.isApi(request)) this.announceRetirement(reply);
      done(null, payload);
    });
  }

  private isApi(request: FastifyRequest): boolean {
    return getRouteAccess(request).area === 'api';
  }

  private guard(
    request: AuthenticatedRequest,
    reply: FastifyReply,
    access: RouteAccess,
  ): Awaitable<void> {
    const { raw, headers } = request;
    // Of several the first would count here, and perhaps another one in a proxy: none of them does.
    if (countFields(raw, 'authorization') > 1) delete headers.authorization;
    const isForPrograms = access.area !== 'page' || headers.authorization !== undefined;
    if (isForPrograms && isUnencrypted(headers, this.config)) {
      request.denial = 'unencrypted';
      const error = createUnencryptedError(this.config);
      if (access.area !== 'api') throw error;
      return this.refuseCounted(request, reply, error);
    }
    if (access.area === 'api') return this.guardApi(request, reply, access);
    if (access.area === 'admin') return this.parts.adminGuard.guard(request, reply, this.limits);
    return this.guardPage(request, access);
  }

  /** @returns whether the request goes on; otherwise it has its response */
  private decide(
    request: FastifyRequest,
    reply: FastifyReply,
    access: RouteAccess,
  ): Awaitable<boolean> {
    assertHost(request);
    const { method, is404 } = request;
    // Asked once: by the first request all routes are registered.
    access.isAmbiguous ??= this.routes.isAmbiguous(access.pattern);
    if (is404 || method === 'OPTIONS' || access.isAmbiguous) {
      if (respondToMethod(this.routes, request, reply)) return false;
    }
    if (!access.isAvailable) throw new NotFoundException();
    if (access.isAllowedInMaintenance || SAFE_METHODS.has(method)) return true;
    const maintenance = this.parts.maintenance.find();
    if (maintenance === undefined) return true;
    if (maintenance instanceof Promise) return maintenance.then(refuseInMaintenance);
    return refuseInMaintenance(maintenance);
  }

  /** Limits requests outside the API per IP address, except on routes with their own limit or none. */
  private guardPage(
    request: FastifyRequest,
    { isUncounted, ownLimit: own }: RouteAccess,
  ): Awaitable<void> {
    if (isUncounted) return undefined;
    const usage = this.limits.countPage(request.ip, { own });
    if (usage instanceof Promise) return usage.then((remote) => this.assertWithinLimit(remote));
    return this.assertWithinLimit(usage);
  }

  /** Counts the work of a request beyond that of one. A request that exceeds a limit by it has counted once. */
  private async countWork(
    request: AuthenticatedRequest,
    reply: FastifyReply,
    work: number,
  ): Promise<void> {
    const { caller, accountId, ip } = request;
    const { ownLimit: own } = getRouteAccess(request);
    const usage = caller
      ? await this.limits.countToken(caller, {
          own,
          accountId,
          owner: this.findOwner(accountId),
          work,
        })
      : await this.limits.countPage(ip, { own, work });
    if (caller) reply.headers(renderLimitHeaders(usage));
    this.assertWithinLimit(usage);
  }

  /** Checks an API request, at once while everything that it takes is known in this process. */
  private guardApi(
    request: AuthenticatedRequest,
    reply: FastifyReply,
    access: RouteAccess,
  ): Awaitable<void> {
    if (this.config.v1.sunsetAt !== null && isRetired(this.config, getNow())) {
      const versioning = toVersioningJson(this.config, getNow());
      return this.refuseCounted(request, reply, new VersionSunsetError(versioning));
    }
    const token = readBearerToken(request);
    const caller = token === undefined ? undefined : this.parts.authenticator.authenticate(token);
    if (!(caller instanceof Promise)) return this.guardCaller(request, reply, access, caller);
    return caller.then(
      (sender) => this.guardCaller(request, reply, access, sender),
      // The headers are sent even when the lookup itself fails.
      (error: unknown) => this.refuseCounted(request, reply, error),
    );
  }

  /** Counts a request against the limits of its caller, and of the account if the caller is known to belong to it. */
  private guardCaller(
    request: AuthenticatedRequest,
    reply: FastifyReply,
    access: RouteAccess,
    caller: Caller | undefined,
  ): Awaitable<void> {
    if (caller) request.caller = caller;
    const { ownLimit: own, operation } = access;
    const { account_id: id } = (request.params ?? {}) as { account_id?: string };
    const accountId = id === undefined ? undefined : (findPathId(id) ?? null);
    const denial = this.findKnownDenial(caller, accountId, operation);
    const isKnown = typeof accountId === 'number' && denial !== undefined && denial !== 'not_found';
    const usage = caller
      ? this.limits.countToken(
          caller,
          isKnown ? { own, accountId, owner: this.findOwner(accountId) } : { own },
        )
      : this.limits.countAddress(request.ip, { own });
    if (!(usage instanceof Promise)) {
      return this.admit(request, reply, access, usage, accountId, denial);
    }
    return usage.then((remote) => {
      // Rights may have changed meanwhile. What was unknown is looked up, because the account is still to be counted.
      const current = isKnown ? this.findKnownDenial(caller, accountId, operation) : undefined;
      return this.admit(request, reply, access, remote, accountId, current);
    });
  }

  private findOwner(accountId: number | undefined): number | undefined {
    return accountId === undefined ? undefined : this.parts.owners.findKnown(accountId);
  }

  private findKnownDenial(
    caller: Caller | undefined,
    accountId: number | null | undefined,
    operation: string | undefined,
  ): AccountDenial | null | undefined {
    if (!caller || typeof accountId !== 'number') return undefined;
    // The owner, for whom it counts as well, is looked up together with the rights.
    if (this.findOwner(accountId) === undefined) return undefined;
    return this.parts.authenticator.findKnownDenial(caller, accountId, operation);
  }

  /**
   * @param accountId of the path; undefined: the path names no store; null: no store can have this id
   * @param denial undefined: not known without a lookup
   */
  private admit(
    request: AuthenticatedRequest,
    reply: FastifyReply,
    { isStatus, operation }: RouteAccess,
    usage: Usage,
    accountId: number | null | undefined,
    denial: AccountDenial | null | undefined,
  ): Awaitable<void> {
    reply.headers(renderLimitHeaders(usage));
    this.assertWithinLimit(usage);
    if (isStatus) return undefined;
    const { caller } = request;
    if (!caller) throw new UnauthorizedError();
    if (accountId === undefined) {
      shareDatabase(request, `principal ${caller.principalId}`);
      return assertMayWrite(request, caller);
    }
    if (accountId === null) throw new NotFoundError(this.parts.authenticator.accountName);
    if (denial !== undefined) return this.enter(request, caller, accountId, denial);
    const lookup = this.parts.authenticator.findDenial(caller, accountId, operation);
    return this.enterNew(request, reply, caller, accountId, lookup);
  }

  /** Admits the first request after a change of rights: only now the caller is known to belong to the account. */
  private async enterNew(
    request: AuthenticatedRequest,
    reply: FastifyReply,
    caller: Caller,
    accountId: number,
    lookup: Promise<AccountDenial | null>,
  ): Promise<void> {
    const denial = await lookup;
    if (denial !== 'not_found') {
      const owner = await this.parts.owners.find(accountId);
      const usage = await this.limits.countAccount(accountId, owner);
      if (usage.isExceeded) reply.headers(renderLimitHeaders(usage));
      else if (usage.remaining < Number(reply.getHeader('ratelimit-remaining'))) {
        const { remaining, secondsLeft } = usage;
        reply.headers({ 'ratelimit-remaining': remaining, 'ratelimit-reset': secondsLeft });
      }
      this.assertWithinLimit(usage);
    }
    this.enter(request, caller, accountId, denial);
  }

  private enter(
    request: AuthenticatedRequest,
    caller: Caller,
    accountId: number,
    denial: AccountDenial | null,
  ): void {
    if (denial === 'not_found') throw new NotFoundError(this.parts.authenticator.accountName);
    request.accountId = accountId;
    shareDatabase(request, this.findOwner(accountId) ?? accountId);
    if (denial === null) return assertMayWrite(request, caller);
    request.denial = 'role';
    throw new ForbiddenError();
  }

  private assertWithinLimit({ isExceeded, secondsLeft, window }: Usage): void {
    if (!isExceeded) return;
    this.parts.metrics.countRateLimited(window.scope);
    throw new RateLimitedError(secondsLeft);
  }

  /** Refuses a request before its caller is known. */
  private async refuseCounted(
    request: FastifyRequest,
    reply: FastifyReply,
    error: unknown,
  ): Promise<never> {
    await this.countAddress(request, reply);
    throw error;
  }

  /**
   * Counts preflights. They get their responses before the request guard: if one were refused, the script could not see
   * why. They count against the address, since they never carry a token.
   */
  private countPreflights(server: FastifyInstance): void {
    server.addHook('onSend', (request, reply, payload, done) => {
      if (reply.hasHeader('ratelimit-limit') || !this.isApi(request)) return done(null, payload);
      this.countAddress(request, reply).then(() => done(null, payload), done);
    });
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

/**
 * Refuses what RFC 9112, section 3.2 refuses: no Host, more than one, or one that is no host. Proxies in front may take
 * the other Host.
 */
function assertHost({ headers: { host }, raw }: FastifyRequest): void {
  const isMissing = host === undefined && raw.httpVersion === '1.1';
  if (isMissing) throw createHostError('The request has no header Host');
  if (countFields(raw, 'host') > 1) {
    throw createHostError('The request has more than one header Host');
  }
  if (host !== undefined && !HOST.test(host))
    throw createHostError('The header Host is not a host');
}

/** A redirect would let its client go on sending the token in clear, and nobody would notice. */
function createUnencryptedError({ publicUrl }: PlatformConfig): ForbiddenError {
  return new ForbiddenError(
    'This is only available over https',
    `Send requests to ${publicUrl}. If this one had a token, it has crossed the network in clear: revoke it and create another.`,
  );
}

function createHostError(message: string): CatalogueError {
  const resolution = 'Send the header Host once: the name or address of the service, and its port.';
  return new CatalogueError('malformed_request', message, { resolution });
}

function refuseInMaintenance(row: MaintenanceRow | undefined): true {
  if (row) throw new MaintenanceError(row.reason);
  return true;
}
