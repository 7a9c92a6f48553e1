import ipaddr from 'ipaddr.js';
import type { Config } from '#kernel/config.js';
import type { Caller } from './caller.js';
import { parseAddress } from './client-address.js';
import type { RouteLimit } from './throttle.js';
import type { Counted, Counts } from './throttler-storage.js';

export const WINDOW_SECONDS = 60;

export type Usage = {
  limit: number;
  remaining: number;
  resetSeconds: number;
  exceeded: boolean;
  windowSeconds: number;
};

/** Where a route has a limit of its own: it is counted apart from all others. */
type OwnLimit = { route: string; limit: RouteLimit };

/** Who is counted, and against which limit. */
export class RateLimits {
  constructor(
    private readonly counts: Counts,
    private readonly config: Config,
  ) {}

  /** Within the API, for a caller with a valid token. */
  ofToken({ tokenId, perMinute }: Caller, own?: OwnLimit): Usage | Promise<Usage> {
    return this.count(`token ${tokenId}`, perMinute ?? this.config.rateLimitPerMinute, own);
  }

  /** Within the API, for anybody else. */
  ofAddress(ip: string, own?: OwnLimit): Usage | Promise<Usage> {
    return this.count(`ip ${addressKey(ip)}`, this.config.rateLimitPerMinute, own);
  }

  /** Outside the API. */
  ofPages(ip: string, own?: OwnLimit): Usage | Promise<Usage> {
    return this.count(`page ${addressKey(ip)}`, this.config.pageRateLimitPerMinute, own);
  }

  private count(who: string, perMinute: number, own?: OwnLimit): Usage | Promise<Usage> {
    const key = own ? `${own.route} ${who}` : who;
    const { limit, ttl } = own?.limit ?? { limit: perMinute, ttl: WINDOW_SECONDS * 1000 };
    const counted = this.counts.count(key, ttl, limit);
    return counted instanceof Promise
      ? counted.then((later) => usageOf(later, limit, ttl))
      : usageOf(counted, limit, ttl);
  }
}

function usageOf(
  { totalHits, timeToExpire, isBlocked }: Counted,
  limit: number,
  ttl: number,
): Usage {
  return {
    limit,
    remaining: Math.max(0, limit - totalHits),
    resetSeconds: timeToExpire,
    exceeded: isBlocked,
    windowSeconds: ttl / 1000,
  };
}

/** The four fields of draft revisions 04 to 06; Reset counts seconds, it is no point in time. */
export function limitHeaders(usage: Usage): Record<string, string | number> {
  return {
    'ratelimit-limit': usage.limit,
    'ratelimit-remaining': usage.remaining,
    'ratelimit-reset': usage.resetSeconds,
    'ratelimit-policy': `${usage.limit};w=${usage.windowSeconds}`,
  };
}

/**
 * One key per caller: whoever has IPv6 can choose from at least a /64 of addresses.
 * @param ip undefined, whatever Fastify's types say, once the caller has hung up
 */
export function addressKey(ip: string | undefined): string {
  if (ip === undefined) return 'gone';
  const address = parseAddress(ip);
  if (address === undefined) return 'unknown';
  if (address instanceof ipaddr.IPv6) {
    const network = address.parts.slice(0, 4).map((part) => part.toString(16));
    return `${network.join(':')}::/64`;
  }
  return address.toString();
}
