import { request } from 'undici';
import type { Config } from '#configuration/config.js';
import { getErrorMessage } from '#platform/kernel/errors.js';
import type { GeocoderServer } from '#configuration/geocoder-settings.js';
import type { VendorRateLimiter } from '#platform/database/vendor-rate-limiter.js';
import { OutboundHttp } from '#outbound/sending/outbound-http.client.js';
import type { GeocodingCache } from './geocoding-cache.service.js';
import { Geocoder, type GeocodedPlace, type GeocoderResponse } from './geocoder.js';
import { PROTOCOLS, UnexpectedResponseError } from './geocoder-protocols.js';

const DEADLINE_MS = 10_000;
/** Only the best result is requested, which takes a few KB. */
const MAX_RESPONSE_BYTES = 256 * 1024;
/** The pause after a 429 without Retry-After. */
const DEFAULT_PAUSE_MS = 60_000;

type ServerResponse = { status: number; retryAfter: string | undefined; text: string };

/** Looks up addresses at a server, with one request at a time. Results are cached for 90 days. */
export class ServerGeocoder extends Geocoder {
  readonly name: string;
  /** The key of the cache and of the rate limit: other servers have other results. */
  private readonly provider: string;
  private readonly http: OutboundHttp;

  constructor(
    private readonly server: GeocoderServer,
    private readonly cache: GeocodingCache,
    private readonly rateLimiter: VendorRateLimiter,
    proxy: Config['outboundProxy'],
  ) {
    super();
    this.http = new OutboundHttp(proxy, {
      headersTimeout: DEADLINE_MS,
      bodyTimeout: DEADLINE_MS,
      maxResponseSize: MAX_RESPONSE_BYTES,
    });
    this.name = server.protocol;
    this.provider = `${server.protocol} ${server.url}`;
  }

  async find(address: string, signal: AbortSignal): Promise<GeocoderResponse> {
    const cached = await this.cache.find(this.provider, address);
    if (cached !== undefined) return toGeocoderResponse(cached);
    const { requestsPerSecond } = this.server;
    if (!(await this.rateLimiter.acquire(this.provider, requestsPerSecond, signal)))
      return { kind: 'busy' };
    let response: ServerResponse;
    try {
      response = await this.request(address, signal);
    } catch (error) {
      if (signal.aborted) return { kind: 'busy' };
      return { kind: 'failed', error: `cannot be reached: ${getErrorMessage(error)}` };
    }
    // The request may have been delayed, and the server counts by the time of arrival.
    await this.rateLimiter.pauseFor(this.provider, 1000 / requestsPerSecond);
    return this.parseResponse(response, address);
  }

  private async parseResponse(
    { status, retryAfter, text }: ServerResponse,
    address: string,
  ): Promise<GeocoderResponse> {
    if (status === 429 || status === 503) {
      const retryInMs = parseSeconds(retryAfter) * 1000;
      await this.rateLimiter.pauseFor(this.provider, retryInMs || DEFAULT_PAUSE_MS);
      return { kind: 'failed', error: `responded with ${status}`, retryInMs };
    }
    if (status !== 200) return { kind: 'failed', error: `responded with ${status}` };
    let place: GeocodedPlace | null;
    try {
      place = PROTOCOLS[this.server.protocol].parse(JSON.parse(text), address);
    } catch (error) {
      if (!(error instanceof UnexpectedResponseError || error instanceof SyntaxError)) throw error;
      return { kind: 'failed', error: `unexpected response: ${error.message}` };
    }
    await this.cache.save(this.provider, address, place);
    return toGeocoderResponse(place);
  }

  /** Sends the request. Redirects are not followed, so they are responses other than 200. */
  private async request(address: string, signal: AbortSignal): Promise<ServerResponse> {
    const { statusCode, headers, body } = await request(
      PROTOCOLS[this.server.protocol].buildUrl(this.server, address),
      {
        dispatcher: this.http.agent,
        headers: { 'user-agent': this.server.userAgent, accept: 'application/json' },
        signal: AbortSignal.any([signal, AbortSignal.timeout(DEADLINE_MS)]),
      },
    );
    const retryAfter = headers['retry-after'];
    return { status: statusCode, retryAfter: String(retryAfter ?? ''), text: await body.text() };
  }
}

function toGeocoderResponse(place: GeocodedPlace | null): GeocoderResponse {
  return place === null ? { kind: 'not_found' } : { kind: 'found', ...place };
}

/** Parses Retry-After in seconds. For a date, which servers may also send, the retry schedule applies. */
function parseSeconds(retryAfter: string | undefined): number {
  const seconds = Number(retryAfter);
  return Number.isFinite(seconds) && seconds > 0 ? seconds : 0;
}
