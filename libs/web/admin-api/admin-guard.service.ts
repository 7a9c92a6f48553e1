import { Injectable, NotFoundException } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { Config } from '#configuration/config.js';
import { isInRanges } from '#configuration/setting-decorators.js';
import { RateLimitedError, UnauthorizedError } from '#platform/kernel/errors.js';
import {
  assertMayWrite,
  readBearerToken,
  type AuthenticatedRequest,
} from '#platform/http/caller.js';
import { parseIpAddress } from '#platform/http/client-address.js';
import { HttpMetrics } from '#platform/http/http-metrics.js';
import { ADMIN_DOCUMENT, getRoute } from '#platform/http/path.js';
import { renderLimitHeaders, type RateLimits } from '#platform/http/rate-limit.js';
import { AdminTokens } from './admin-tokens.service.js';

/**
 * Decides everything that precedes reading a body in the admin API, in this order: the address (ADMIN-07), the token
 * and its limit (ADMIN-08), whether there is an admin API (ADMIN-02), read-only tokens (ADMIN-06).
 */
@Injectable()
export class AdminGuard {
  constructor(
    private readonly tokens: AdminTokens,
    private readonly metrics: HttpMetrics,
    private readonly config: Config,
  ) {}

  async guard(
    request: AuthenticatedRequest,
    reply: FastifyReply,
    limits: RateLimits,
  ): Promise<void> {
    reply.header('cache-control', 'no-store');
    const isOpen = getRoute(request) === ADMIN_DOCUMENT;
    const isAllowed = isOpen || this.isAllowedAddress(request.ip);
    const token = readBearerToken(request);
    const caller =
      isOpen || !isAllowed || token === undefined
        ? undefined
        : await this.tokens.authenticate(token);
    const usage = caller
      ? await limits.countAdminToken(caller)
      : await limits.countAdminAddress(request.ip);
    reply.headers(renderLimitHeaders(usage));
    if (usage.isExceeded) {
      this.metrics.countRateLimited(usage.window.scope);
      throw new RateLimitedError(usage.secondsLeft);
    }
    if (isOpen) return;
    if (!isAllowed) {
      request.denial = 'admin_address';
      throw new NotFoundException();
    }
    if (!caller) {
      if (await this.tokens.isEnabled()) throw new UnauthorizedError();
      throw new NotFoundException();
    }
    request.adminCaller = caller;
    assertMayWrite(request, caller);
  }

  private isAllowedAddress(ip: string | undefined): boolean {
    const { adminAllowedCidrs } = this.config;
    if (adminAllowedCidrs.length === 0) return true;
    const address = ip === undefined ? undefined : parseIpAddress(ip);
    return address !== undefined && isInRanges(address, adminAllowedCidrs);
  }
}
