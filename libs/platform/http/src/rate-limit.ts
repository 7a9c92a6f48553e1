import ipaddr from 'ipaddr.js';
import type { PlatformConfig } from '#kernel/platform-config.js';
import type { AdminCaller, Caller } from './caller.js';
import { parseIpAddress } from './client-address.js';
import type { RouteLimit } from './throttle.js';
import type { WindowCount, Counts, WindowLimit } from './throttler-storage.js';

export const WINDOW_SECONDS = 60;

export type Usage = {
  limit: number;
  remaining: number;
  resetSeconds: number;
  isExceeded: boolean;
  windowSeconds: number;
  /** Kind of caller that the limit is for, as a label of metrics. */
  scope: string;
};

type ScopedWindow = WindowLimit & { scope: string };

/** The limit of a route that is counted separately from all others. */
type OwnLimit = { route: string; limit: RouteLimit };

/**
 * @property accountId counted as well; left out while the caller may not belong to it
 * @property work what the request costs in all, of which one was counted before its body was read
 */
type Options = {
  own?: OwnLimit | undefined;
  accountId?: number | undefined;
  work?: number | undefined;
};

/** Counts requests against the limits of tokens, accounts and addresses. */
export class RateLimits {
  constructor(
    private readonly counts: Counts,
    private readonly config: PlatformConfig,
  ) {}

  /** Counts an API request with a valid token. */
  countToken(
    { tokenId, perMinute }: Pick<Caller, 'tokenId' | 'perMinute'>,
    { own, accountId, work }: Options = {},
  ): Promise<Usage> {
    const limit = perMinute ?? this.config.rateLimitPerMinute;
    const window = createWindow('token', String(tokenId), limit, own);
    return this.count(
      accountId === undefined ? [window] : [window, this.createAccountWindow(accountId)],
      work,
    );
  }

  /** Counts an API request for an account, whatever its token. */
  countAccount(accountId: number): Promise<Usage> {
    return this.count([this.createAccountWindow(accountId)]);
  }

  /** Counts an API request without a valid token. */
  countAddress(ip: string, { own }: Options = {}): Promise<Usage> {
    const { rateLimitPerMinute } = this.config;
    return this.count([createWindow('address', getAddressKey(ip), rateLimitPerMinute, own)]);
  }

  /** Counts a request outside the API. */
  countPage(ip: string, { own, work }: Options = {}): Promise<Usage> {
    const { pageRateLimitPerMinute } = this.config;
    return this.count(
      [createWindow('page_address', getAddressKey(ip), pageRateLimitPerMinute, own)],
      work,
    );
  }

  /** Counts a request to the admin API with a valid token of its own. */
  countAdminToken({ tokenId }: Pick<AdminCaller, 'tokenId'>): Promise<Usage> {
    const { adminRateLimitPerMinute } = this.config;
    return this.count([createWindow('admin_token', String(tokenId), adminRateLimitPerMinute)]);
  }

  /** Counts a request to the admin API without a valid token. */
  countAdminAddress(ip: string): Promise<Usage> {
    const { adminRateLimitPerMinute } = this.config;
    return this.count([createWindow('admin_address', getAddressKey(ip), adminRateLimitPerMinute)]);
  }

  private createAccountWindow(accountId: number): ScopedWindow {
    return createWindow('account', String(accountId), this.config.accountRateLimitPerMinute);
  }

  /** Counts a request once, or what its work costs beyond that: with a limit below its work it needs a whole window. */
  private async count(windows: ScopedWindow[], work?: number): Promise<Usage> {
    const weighted =
      work === undefined
        ? windows
        : windows.map((window) => ({ ...window, hits: Math.min(work, window.limit) - 1 }));
    return toUsage(weighted, await this.counts.count(weighted));
  }
}

const KEYS = {
  token: 'token',
  account: 'account',
  address: 'ip',
  page_address: 'page',
  admin_token: 'admin',
  admin_address: 'admin ip',
} as const;

function createWindow(
  scope: keyof typeof KEYS,
  id: string,
  perMinute: number,
  own?: OwnLimit,
): ScopedWindow {
  const key = `${KEYS[scope]} ${id}`;
  return own
    ? { scope, key: `${own.route} ${key}`, ...own.limit }
    : { scope, key, limit: perMinute, ttl: WINDOW_SECONDS * 1000 };
}

/** Reports the exceeded limit, or else the first: the caller's own. */
function toUsage(windows: ScopedWindow[], counts: WindowCount[]): Usage {
  const refusedIndex = counts.findIndex(({ isBlocked }) => isBlocked);
  const window = windows[Math.max(0, refusedIndex)];
  const count = counts[Math.max(0, refusedIndex)];
  if (!window || !count) throw new Error('a request is counted in a window at least');
  const { limit, ttl, scope } = window;
  return {
    limit,
    remaining: Math.max(0, limit - count.totalHits),
    resetSeconds: count.timeToExpire,
    isExceeded: count.isBlocked,
    windowSeconds: ttl / 1000,
    scope,
  };
}

/** Renders the four header fields of draft revisions 04 to 06. Reset counts seconds, it is no point in time. */
export function renderLimitHeaders(usage: Usage): Record<string, string | number> {
  return {
    'ratelimit-limit': usage.limit,
    'ratelimit-remaining': usage.remaining,
    'ratelimit-reset': usage.resetSeconds,
    'ratelimit-policy': `${usage.limit};w=${usage.windowSeconds}`,
  };
}

/**
 * Returns one key per caller: with IPv6 a caller can choose from at least a /64 of addresses.
 * @param ip undefined, whatever Fastify's types say, once the caller has disconnected
 */
export function getAddressKey(ip: string | undefined): string {
  return getRangeKey(ip, { ipv4Bits: 32, ipv6Bits: 64 });
}

/**
 * Returns one key per network, for limits shared by anonymous callers. That is a /24 of IPv4, and the /48 of IPv6
 * that a provider assigns to one subscriber at most (RFC 6177).
 */
export function getNetworkKey(ip: string | undefined): string {
  return getRangeKey(ip, { ipv4Bits: 24, ipv6Bits: 48 });
}

function getRangeKey(
  ip: string | undefined,
  { ipv4Bits, ipv6Bits }: { ipv4Bits: number; ipv6Bits: number },
): string {
  if (ip === undefined) return 'gone';
  const address = parseIpAddress(ip);
  if (address === undefined) return 'unknown';
  if (address instanceof ipaddr.IPv6) {
    const network = address.parts.slice(0, ipv6Bits / 16).map((part) => part.toString(16));
    return `${network.join(':')}::/${ipv6Bits}`;
  }
  if (ipv4Bits === 32) return address.toString();
  return `${address.octets.slice(0, ipv4Bits / 8).join('.')}.0/${ipv4Bits}`;
}
