import { SignJWT } from 'jose';
import {
  connect,
  constants,
  type ClientHttp2Session,
  type ClientHttp2Stream,
  type IncomingHttpHeaders,
  type IncomingHttpStatusHeader,
} from 'node:http2';
import type { Socket } from 'node:net';
import { getNowMs } from '#platform/kernel/clock.js';
import type { AppleCredentials } from '#configuration/apple-credentials.js';
import type { OutboundTunnels } from '#outbound/sending/outbound-tunnels.client.js';
import { USER_AGENT } from '#outbound/sending/user-agent.js';

/** Bounds everything that Apple may leave without a response. */
export type ApnsTimeouts = {
  connectTimeoutMs: number;
  responseTimeoutMs: number;
  pingIntervalMs: number;
  pongTimeoutMs: number;
};

export const APNS_TIMEOUTS: ApnsTimeouts = {
  connectTimeoutMs: 10_000,
  responseTimeoutMs: 10_000,
  pingIntervalMs: 60_000,
  pongTimeoutMs: 10_000,
};

/** Apple accepts tokens that are 20 to 60 minutes old. */
const TOKEN_LIFETIME_MS = 40 * 60_000;
/** How long Apple stores a push for a phone that is switched off. */
const PUSH_LIFETIME_SECONDS = 30 * 24 * 60 * 60;
/** A response body is a line of JSON. */
const MAX_BODY_LENGTH = 4_096;

export type ApnsResponse = {
  status: number;
  /** For example BadDeviceToken; empty on success. */
  reason: string;
  /** With a 410: when Apple noticed that the device is gone. */
  goneAt: Date | null;
  /** From Retry-After, if Apple sends one. */
  retryInMs: number | null;
};

/**
 * Sends pushes over one HTTP/2 connection, opened when needed and kept alive: Apple treats frequent reconnects as an
 * attack. A failure of the connection fails the pushes on it, and the next push opens another.
 */
export class ApnsClient {
  private session: Promise<ClientHttp2Session> | undefined;
  /** A promise, so that pushes at the same time share one: Apple refuses tokens that change too often. */
  private token: { jwt: Promise<string>; createdAt: number } | undefined;
  private closed = false;

  constructor(
    private readonly credentials: AppleCredentials,
    private readonly tunnels: OutboundTunnels,
    private readonly timeouts = APNS_TIMEOUTS,
  ) {}

  /**
   * Sends a push.
   * @throws Error when there was no response: it is unknown whether the push arrived, but sending it twice is harmless
   */
  async push(deviceToken: string, signal: AbortSignal): Promise<ApnsResponse> {
    const response = await this.sendPush(deviceToken, signal);
    // Apple decides whether a token has expired: the clock here may be wrong.
    if (response.reason !== 'ExpiredProviderToken' || this.credentials.push.token === null) {
      return response;
    }
    this.token = undefined;
    return this.sendPush(deviceToken, signal);
  }

  close(): void {
    this.closed = true;
    const pendingSession = this.session;
    this.session = undefined;
    pendingSession?.then(
      (session) => session.destroy(),
      () => undefined,
    );
  }

  private async sendPush(deviceToken: string, signal: AbortSignal): Promise<ApnsResponse> {
    signal.throwIfAborted();
    const session = await this.getOpenSession();
    const authorization = await this.createAuthorization();
    const stream = session.request({
      ':method': 'POST',
      ':path': `/3/device/${deviceToken}`,
      'user-agent': USER_AGENT,
      'apns-topic': this.credentials.passTypeId,
      'apns-push-type': 'background',
      'apns-priority': '5',
      'apns-expiration': String(Math.floor(getNowMs() / 1000) + PUSH_LIFETIME_SECONDS),
      ...(authorization !== null && { authorization }),
    });
    stream.end('{}');
    try {
      return await readResponse(stream, signal, this.timeouts.responseTimeoutMs);
    } catch (error) {
      // A peer that does not respond on one stream responds on none.
      if (error instanceof TimeoutError) session.destroy(error);
      throw error;
    }
  }

  private async getOpenSession(): Promise<ClientHttp2Session> {
    // A session that was just destroyed may not have emitted its event yet.
    const session = await this.getSession();
    if (!session.closed && !session.destroyed) return session;
    this.session = undefined;
    return this.getSession();
  }

  private getSession(): Promise<ClientHttp2Session> {
    if (this.closed) throw new Error('the connection to the push service was closed');
    if (this.session) return this.session;
    const opening = this.openSession();
    this.session = opening;
    const forgetSession = () => {
      if (this.session === opening) this.session = undefined;
    };
    opening.then((session) => {
      // GOAWAY: pushes in flight still get their responses, new ones need another connection.
      session.once('goaway', forgetSession);
      session.once('close', forgetSession);
    }, forgetSession);
    return opening;
  }

  private async openSession(): Promise<ClientHttp2Session> {
    const { hostname, port } = new URL(this.credentials.push.url);
    const { connectTimeoutMs } = this.timeouts;
    const tunnel = await this.tunnels.open(hostname, Number(port) || 443, connectTimeoutMs);
    if (!this.closed) return this.startSession(tunnel);
    tunnel?.destroy();
    throw new Error('the connection to the push service was closed');
  }

  /** @param tunnel to Apple; undefined: connects directly */
  private startSession(tunnel: Socket | undefined): Promise<ClientHttp2Session> {
    const { push, certificate, key, wwdr } = this.credentials;
    return new Promise((resolve, reject) => {
      const session = connect(push.url, {
        ...(tunnel && { socket: tunnel }),
        ...(push.ca !== null && { ca: push.ca }),
        ...(push.token === null && {
          cert: `${certificate}${wwdr}`,
          key: key.export({ type: 'pkcs8', format: 'pem' }),
        }),
      });
      const timer = setTimeout(() => {
        session.destroy(new TimeoutError('no connection', this.timeouts.connectTimeoutMs));
      }, this.timeouts.connectTimeoutMs);
      session.once('connect', () => {
        clearTimeout(timer);
        this.keepAlive(session);
        resolve(session);
      });
      // Every error rejects the pushes that wait for the connection.
      session.on('error', reject);
      session.once('close', () => {
        clearTimeout(timer);
        reject(new Error('the connection was closed'));
      });
    });
  }

  private keepAlive(session: ClientHttp2Session): void {
    const { pingIntervalMs, pongTimeoutMs } = this.timeouts;
    const pingTimer = setInterval(() => {
      if (session.closed || session.destroyed) return;
      const pongTimer = setTimeout(() => {
        session.destroy(new TimeoutError('no pong', pongTimeoutMs));
      }, pongTimeoutMs);
      // An error of the ping is also emitted by the session.
      session.ping(() => clearTimeout(pongTimer));
      session.once('close', () => clearTimeout(pongTimer));
    }, pingIntervalMs).unref();
    session.once('close', () => clearInterval(pingTimer));
    session.unref();
  }

  /** Creates the provider token. Null: the client certificate authenticates. */
  private async createAuthorization(): Promise<string | null> {
    const { token } = this.credentials.push;
    if (token === null) return null;
    const now = getNowMs();
    if (!this.token || now - this.token.createdAt > TOKEN_LIFETIME_MS) {
      const jwt = new SignJWT()
        .setProtectedHeader({ alg: 'ES256', kid: token.id })
        .setIssuer(this.credentials.teamId)
        .setIssuedAt(new Date(now))
        .sign(token.key);
      this.token = { jwt, createdAt: now };
    }
    return `bearer ${await this.token.jwt}`;
  }
}

class TimeoutError extends Error {
  constructor(problem: string, timeoutMs: number) {
    super(`${problem} within ${timeoutMs} ms`);
  }
}

function readResponse(
  stream: ClientHttp2Stream,
  signal: AbortSignal,
  timeoutMs: number,
): Promise<ApnsResponse> {
  return new Promise((resolve, reject) => {
    let headers: IncomingHttpHeaders = {};
    let body = '';
    const timer = setTimeout(() => giveUp(new TimeoutError('no response', timeoutMs)), timeoutMs);
    const onAbort = () => giveUp(new Error('aborted'));
    const giveUp = (error: Error) => {
      reject(error);
      stream.close(constants.NGHTTP2_CANCEL);
    };
    signal.addEventListener('abort', onAbort);
    // It may have aborted while the connection was being opened.
    if (signal.aborted) onAbort();
    stream.setEncoding('utf8');
    stream.once('response', (responseHeaders) => (headers = responseHeaders));
    stream.on('data', (chunk: string) => {
      if (body.length < MAX_BODY_LENGTH) body += chunk;
    });
    stream.on('error', reject);
    stream.once('close', () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
      const { ':status': status } = headers as IncomingHttpStatusHeader;
      if (status === undefined) reject(new Error('the connection ended before the response'));
      else resolve(parseResponse(status, headers, body));
    });
  });
}

function parseResponse(status: number, headers: IncomingHttpHeaders, body: string): ApnsResponse {
  const { reason, timestamp } = parseJsonBody(body);
  const retryAfterSeconds = Number(headers['retry-after']);
  return {
    status,
    reason: typeof reason === 'string' ? reason : '',
    goneAt: typeof timestamp === 'number' ? new Date(timestamp) : null,
    retryInMs:
      Number.isFinite(retryAfterSeconds) && retryAfterSeconds > 0 ? retryAfterSeconds * 1000 : null,
  };
}

function parseJsonBody(body: string): { reason?: unknown; timestamp?: unknown } {
  try {
    return (JSON.parse(body) ?? {}) as object;
  } catch {
    // Then the status alone decides.
    return {};
  }
}
