import { Inject, Injectable } from '@nestjs/common';
import { getStorageToken, type ThrottlerStorage } from '@nestjs/throttler';
import { Config } from '#configuration/config.js';
import { HttpMetrics } from '#http/http-metrics.js';
import { getAddressKey, getNetworkKey } from '#http/rate-limit.js';

const WINDOW_MS = 10 * 60_000;

/**
 * How often forms may be sent. Everybody in a shop may have one address, so a whole queue must get through; and a poster
 * is limited only by forms that are complete, because otherwise one stranger could close it.
 */
@Injectable()
export class SignupLimits {
  constructor(
    @Inject(getStorageToken()) private readonly storage: ThrottlerStorage,
    private readonly metrics: HttpMetrics,
    private readonly config: Config,
  ) {}

  /** @returns the seconds until the next form is taken, or null: it is taken now */
  countAddress(ip: string): Promise<number | null> {
    return this.count(
      `signup ${getAddressKey(ip)}`,
      this.config.signups.perAddress,
      'signup_address',
    );
  }

  /**
   * Counts a complete form. All addresses of a network together may send as many to a poster as one address may: whoever
   * has many could otherwise close it.
   */
  async countPoster(id: number, ip: string): Promise<number | null> {
    const { perAddress, perPoster } = this.config.signups;
    const network = `signup poster ${id} network ${getNetworkKey(ip)}`;
    return (
      (await this.count(network, perAddress, 'signup_network')) ??
      (await this.count(`signup poster ${id}`, perPoster, 'signup_poster'))
    );
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
