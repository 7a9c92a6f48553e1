import ipaddr from 'ipaddr.js';
import type { Awaitable } from '#platform/kernel/awaitable.js';
import type { PlatformConfig } from '#platform/kernel/platform-config.js';
import type { AdminCaller, Caller } from './caller.js';
import { parseIpAddress } from './client-address.js';
import type { RouteLimit } from './throttle.js';
import type { WindowCount, Counts, WindowLimit } from './throttler-storage.js';

export const WINDOW_SECONDS = 60;

const SCOPES = {
  token: { prefix: 'token', setting: 'rateLimitPerMinute' },
  account: { prefix: 'account', setting: 'accountRateLimitPerMinute' },
  owner: { prefix: 'owner', setting: 'accountRateLimitPerMinute' },
  address: { prefix: 'ip', setting: 'rateLimitPerMinute' },
  page_address: { prefix: 'page', setting: 'pageRateLimitPerMinute' },
  admin_token: { prefix: 'admin', setting: 'rateLimitPerMinute' },
  admin_address: { prefix: 'admin ip', setting: 'rateLimitPerMinute' },
} as const;

/** All accounts of one owner may together have as many requests as two accounts (LIMIT-28). */
const ACCOUNTS_PER_OWNER = 2;

/** @property scope the kind of caller that the limit is for, as a label of metrics */
type ScopedWindow = WindowLimit & { scope: keyof typeof SCOPES };

/** The window whose limit a request exceeds, or else the first: the caller's own. */
export type Usage = WindowCount<ScopedWindow>;

/** The limit of a route that is counted separately from all others. */
export type OwnLimit = { route: string; limit: RouteLimit };

/**
 * @property accountId counted as well; left out while the caller may not belong to it
 * @property owner of the account
 * @property work what the request costs in all, of which one was counted before its body was read
 */
type Options = {
  own?: OwnLimit | undefined;
  accountId?: number | undefined;
  owner?: number | undefined;
  work?: number | undefined;
};

/** Counts requests against the limits of tokens, accounts and addresses, at once unless another process counts. */
export class RateLimits {
  constructor(
    private readonly counts: Counts,
    private readonly config: PlatformConfig,
  ) {}

  /** Counts an API request with a valid token. */
  countToken(
    { tokenId, perMinute }: Pick<Caller, 'tokenId' | 'perMinute'>,
    { own, accountId, owner = accountId, work }: Options = {},
  ): Awaitable<Usage> {
    const windows = [this.createWindow('token', tokenId, own, perMinute)];
    if (accountId !== undefined) windows.push(...this.createAccountWindows(accountId, owner));
    return this.countWork(windows, work);
  }

  /** Counts an API request for an account, whatever its token. */
  countAccount(accountId: number, owner?: number): Awaitable<Usage> {
    return this.counts.count(this.createAccountWindows(accountId, owner));
  }

  /** Counts an API request without a valid token. */
  countAddress(ip: string, { own }: Options = {}): Awaitable<Usage> {
    return this.counts.count([this.createWindow('address', getAddressKey(ip), own)]);
  }

  /** Counts a request outside the API. */
  countPage(ip: string, { own, work }: Options = {}): Awaitable<Usage> {
    return this.countWork([this.createWindow('page_address', getAddressKey(ip), own)], work);
  }

  /** Counts a request to the admin API with a valid token of its own. */
  countAdminToken({ tokenId }: Pick<AdminCaller, 'tokenId'>): Awaitable<Usage> {
    return this.counts.count([this.createWindow('admin_token', tokenId)]);
  }

  /** Counts a request to the admin API without a valid token. */
  countAdminAddress(ip: string): Awaitable<Usage> {
    return this.counts.count([this.createWindow('admin_address', getAddressKey(ip))]);
  }

  private createAccountWindows(accountId: number, owner = accountId): ScopedWindow[] {
    const ofOwner = this.createWindow('owner', owner);
    ofOwner.limit *= ACCOUNTS_PER_OWNER;
    return [this.createWindow('account', accountId), ofOwner];
  }

  /** @param perMinute null: as the settings say */
  private createWindow(
    scope: keyof typeof SCOPES,
    id: string | number,
    own?: OwnLimit,
    perMinute: number | null = null,
  ): ScopedWindow {
    const { prefix, setting } = SCOPES[scope];
    const key = `${prefix} ${id}`;
    if (own) return { scope, key: `${own.route} ${key}`, ...own.limit };
    return { scope, key, limit: perMinute ?? this.config[setting], ttl: WINDOW_SECONDS * 1000 };
  }

  /** Counts a request once, or what its work costs beyond that: with a limit below its work it needs a whole window. */
  private countWork(windows: readonly ScopedWindow[], work = 1): Awaitable<Usage> {
    if (work === 1) return this.counts.count(windows);
    return this.counts.count(
      windows.map((window) => ({ ...window, hits: Math.min(work, window.limit) - 1 })),
    );
  }
}

/**
 * Renders the four header fields of draft revisions 04 to 06. Reset counts seconds, it is no point in time. What remains is
 * that of the tightest limit, so it is zero before the first refused request.
 */
export function renderLimitHeaders({
  window: { limit, ttl },
  remaining,
  secondsLeft,
}: Usage): Record<string, string | number> {
  return {
    'ratelimit-limit': limit,
    'ratelimit-remaining': remaining,
    'ratelimit-reset': secondsLeft,
    'ratelimit-policy': `${limit};w=${ttl / 1000}`,
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
