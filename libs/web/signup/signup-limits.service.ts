import { Inject, Injectable } from '@nestjs/common';
import { getStorageToken, type ThrottlerStorage } from '@nestjs/throttler';
import { Pool } from 'pg';
import { Config } from '#configuration/config.js';
import { WindowCounts } from '#platform/database/window-counts.js';
import { HttpMetrics } from '#platform/http/http-metrics.js';
import { getAddressKey, getNetworkKey } from '#platform/http/rate-limit.js';
import { CustomerQuota } from '#loyalty/customers/customer-quota.service.js';
import { calculateNetworkShare } from './network-share.js';

const WINDOW_MS = 10 * 60_000;

/** How many networks may use a poster up together. */
const ADDRESSES_PER_POSTER = 6;

/**
 * Limits how often forms may be sent. All people in a shop may share one IP address, so a whole queue must get through.
 * A poster counts complete forms only, because otherwise one stranger could close it.
 */
@Injectable()
export class SignupLimits {
  constructor(
    @Inject(getStorageToken()) private readonly storage: ThrottlerStorage,
    private readonly counts: WindowCounts,
    private readonly quota: CustomerQuota,
    private readonly pool: Pool,
    private readonly metrics: HttpMetrics,
    private readonly config: Config,
  ) {}

  /** Counts a form of an IP address. @returns the seconds until the next one is accepted; null: this one is */
  countAddress(ip: string): Promise<number | null> {
    return this.count(
      `signup ${getAddressKey(ip)}`,
      this.config.signupsPerAddress,
      'signup_address',
    );
  }

  /**
   * Counts a complete form. All IP addresses of a network together may send as many to a poster as one of them:
   * otherwise a person with many could close it.
   */
  async countPoster(id: number, ip: string): Promise<number | null> {
    const { signupsPerAddress: perAddress } = this.config;
    const network = `signup poster ${id} network ${getNetworkKey(ip)}`;
    return (
      (await this.count(network, perAddress, 'signup_network')) ??
      (await this.count(`signup poster ${id}`, perAddress * ADDRESSES_PER_POSTER, 'signup_poster'))
    );
  }

  /**
   * Counts a complete form against the share that its network has of the store's quota of customers in a day. It counts
   * whether or not somebody has the entered contacts, because the count would tell.
   */
  async countStore(accountId: number, ip: string): Promise<number | null> {
    const { owner, max } = await this.quota.findShare(accountId);
    if (max === null) return null;
    const seconds = await this.counts.addUpTo(
      this.pool,
      ['signups of a network', owner, getNetworkKey(ip)],
      calculateNetworkShare(max),
    );
    if (seconds !== null) this.metrics.countRateLimited('signup_network');
    return seconds;
  }

  private async count(
    key: string,
    limit: number,
    scope: 'signup_address' | 'signup_network' | 'signup_poster',
  ): Promise<number | null> {
    const hit = await this.storage.increment(key, WINDOW_MS, limit, 0, 'default');
    if (!hit.isBlocked) return null;
    this.metrics.countRateLimited(scope);
    return hit.timeToExpire;
  }
}
