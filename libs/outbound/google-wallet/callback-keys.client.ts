import { Injectable } from '@nestjs/common';
import { Config } from '#configuration/config.js';
import { getMessageWithCause, UnavailableError } from '#platform/kernel/errors.js';
import { OutboundHttp } from '#outbound/sending/outbound-http.client.js';
import { parseRootKeys, type RootKey } from './callback.js';

const DEADLINE_MS = 5_000;
const CACHE_MS = 3600_000;
/** Bounds how often requests can make the service fetch the keys. */
const MIN_REFRESH_INTERVAL_MS = 60_000;
const MIN_RETRY_INTERVAL_MS = 5_000;

/** Fetches and caches Google's public root keys for callbacks. */
@Injectable()
export class CallbackKeys {
  private keys: RootKey[] = [];
  private fetchedAt = -Infinity;
  private attemptedAt = -Infinity;
  private fetching: Promise<void> | undefined;

  private readonly http: OutboundHttp;

  constructor(private readonly config: Config) {
    this.http = new OutboundHttp(config.outboundProxy);
  }

  /**
   * Returns the keys. Cached ones remain in use while new ones cannot be fetched; each has its own expiry.
   * @throws UnavailableError when there are none and none can be fetched
   */
  async get(): Promise<RootKey[]> {
    const now = performance.now();
    const isDue = now - this.fetchedAt > CACHE_MS && now - this.attemptedAt > MIN_RETRY_INTERVAL_MS;
    if (isDue || this.fetching) {
      try {
        await this.refresh();
      } catch (error) {
        if (this.keys.length === 0) throw error;
      }
    }
    if (this.keys.length === 0) throw new UnavailableError("Google's keys cannot be fetched");
    return this.keys;
  }

  /**
   * Fetches the keys again after a signature by an unknown key: Google may have rotated its keys.
   * @returns whether they were fetched
   * @throws UnavailableError
   */
  async refreshAfterUnknownSignature(): Promise<boolean> {
    if (performance.now() - this.attemptedAt < MIN_REFRESH_INTERVAL_MS) return false;
    await this.refresh();
    return true;
  }

  private refresh(): Promise<void> {
    this.fetching ??= this.fetch().finally(() => {
      this.fetching = undefined;
    });
    return this.fetching;
  }

  private async fetch(): Promise<void> {
    const url = this.config.google?.callbackKeysUrl;
    if (url === undefined) throw new UnavailableError('Google Wallet is not configured');
    this.attemptedAt = performance.now();
    try {
      const response = await this.http.fetch(url, {
        redirect: 'error',
        signal: AbortSignal.timeout(DEADLINE_MS),
      });
      if (!response.ok) throw new Error(`responded with ${response.status}`);
      const keys = parseRootKeys(await response.json());
      if (keys.length === 0) throw new Error('no keys in the response');
      this.keys = keys;
      this.fetchedAt = this.attemptedAt;
    } catch (cause) {
      throw new UnavailableError(`Google's keys cannot be fetched: ${getMessageWithCause(cause)}`, {
        cause,
      });
    }
  }
}
