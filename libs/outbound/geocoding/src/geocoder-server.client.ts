import { Agent, request } from 'undici';
import { messageOf } from '#kernel/errors.js';
import type { GeocoderServer } from '#kernel/geocoder-settings.js';
import { pause } from '#kernel/pause.js';
import type { GeocodingCache } from './geocoding-cache.service.js';
import type { GeocodingPace } from './geocoding-pace.service.js';
import { Geocoder, type Found, type GeocoderAnswer } from './geocoder.js';
import { PROTOCOLS, UnexpectedAnswerError } from './geocoder-protocols.js';

const DEADLINE_MS = 10_000;
/** The best answer alone is asked for; it takes a few KB. */
const MOST_BYTES = 256 * 1024;
/** After a 429 that names no time. */
const REST_MS = 60_000;

type Reply = { status: number; retryAfter: string | undefined; text: string };

/** A server that speaks one of the protocols. It is asked once about an address in 90 days, and one request at a time. */
export class ServerGeocoder extends Geocoder {
  readonly name: string;
  /** Answers of another server are not its own. */
  private readonly provider: string;
  private readonly agent = new Agent({
    connect: { timeout: DEADLINE_MS },
    headersTimeout: DEADLINE_MS,
    bodyTimeout: DEADLINE_MS,
    maxResponseSize: MOST_BYTES,
  });

  constructor(
    private readonly server: GeocoderServer,
    private readonly cache: GeocodingCache,
    private readonly pace: GeocodingPace,
  ) {
    super();
    this.name = server.protocol;
    this.provider = `${server.protocol} ${server.url}`;
  }

  async find(address: string, signal: AbortSignal): Promise<GeocoderAnswer> {
    const known = await this.cache.find(this.provider, address);
    if (known !== undefined) return answerOf(known);
    const wait = await this.pace.turn(this.provider, this.server.requestsPerSecond);
    if (wait === undefined) return { kind: 'busy' };
    await pause(wait, signal);
    if (signal.aborted) return { kind: 'busy' };
    let reply: Reply;
    try {
      reply = await this.ask(address, signal);
    } catch (error) {
      if (signal.aborted) return { kind: 'busy' };
      return { kind: 'failed', error: `cannot be reached: ${messageOf(error)}` };
    }
    // The request may have left late, and the server goes by when requests arrive.
    await this.pace.rest(this.provider, 1000 / this.server.requestsPerSecond);
    return this.read(reply, address);
  }

  private async read(
    { status, retryAfter, text }: Reply,
    address: string,
  ): Promise<GeocoderAnswer> {
    if (status === 429 || status === 503) {
      const retryInMs = secondsOf(retryAfter) * 1000;
      await this.pace.rest(this.provider, retryInMs || REST_MS);
      return { kind: 'failed', error: `answered ${status}`, retryInMs };
    }
    if (status !== 200) return { kind: 'failed', error: `answered ${status}` };
    let found: Found | null;
    try {
      found = PROTOCOLS[this.server.protocol].read(JSON.parse(text), address);
    } catch (error) {
      if (!(error instanceof UnexpectedAnswerError || error instanceof SyntaxError)) throw error;
      return { kind: 'failed', error: `answered something else: ${error.message}` };
    }
    await this.cache.keep(this.provider, address, found);
    return answerOf(found);
  }

  /** Redirects are not followed: they end as an answer other than 200. */
  private async ask(address: string, signal: AbortSignal): Promise<Reply> {
    const { statusCode, headers, body } = await request(
      PROTOCOLS[this.server.protocol].urlOf(this.server, address),
      {
        dispatcher: this.agent,
        headers: { 'user-agent': this.server.userAgent, accept: 'application/json' },
        signal: AbortSignal.any([signal, AbortSignal.timeout(DEADLINE_MS)]),
      },
    );
    const retryAfter = headers['retry-after'];
    return { status: statusCode, retryAfter: String(retryAfter ?? ''), text: await body.text() };
  }
}

function answerOf(found: Found | null): GeocoderAnswer {
  return found === null ? { kind: 'not_found' } : { kind: 'found', ...found };
}

/** A date, which servers may also send, is no number: the schedule counts then. */
function secondsOf(retryAfter: string | undefined): number {
  const seconds = Number(retryAfter);
  return Number.isFinite(seconds) && seconds > 0 ? seconds : 0;
}
