import { sign } from 'node:crypto';
import {
  connect,
  constants,
  type ClientHttp2Session,
  type ClientHttp2Stream,
  type IncomingHttpHeaders,
  type IncomingHttpStatusHeader,
} from 'node:http2';
import type { AppleCredentials } from '#kernel/apple-credentials.js';

/** Limits of time on everything that Apple may leave unanswered. */
export type ApnsTimes = {
  connectWithinMs: number;
  answerWithinMs: number;
  pingEveryMs: number;
  pongWithinMs: number;
};

export const APNS_TIMES: ApnsTimes = {
  connectWithinMs: 10_000,
  answerWithinMs: 10_000,
  pingEveryMs: 60_000,
  pongWithinMs: 10_000,
};

/** Apple takes tokens of twenty to sixty minutes. */
const TOKEN_KEPT_MS = 40 * 60_000;
/** How long Apple keeps a push for a phone that is switched off. */
const KEPT_SECONDS = 30 * 24 * 60 * 60;
/** Of an answer's body, which is a line of JSON. */
const LONGEST_BODY = 4_096;

export type ApnsAnswer = {
  status: number;
  /** Such as BadDeviceToken; empty on success. */
  reason: string;
  /** Of a 410: when the device was found to be gone. */
  since: Date | null;
  /** What Apple asks to wait, if it says so. */
  retryInMs: number | null;
};

/**
 * One HTTP/2 connection to Apple's push service, opened when needed and kept alive: Apple takes connections that come
 * and go for an attack. Any failure of the connection fails the pushes that are on it, and the next one opens another.
 */
export class ApnsClient {
  private session: Promise<ClientHttp2Session> | undefined;
  private token: { text: string; madeAt: number } | undefined;
  private closed = false;

  constructor(
    private readonly credentials: AppleCredentials,
    private readonly times = APNS_TIMES,
  ) {}

  /** @throws Error when there was no answer: whether the push arrived is then unknown, and it does no harm twice */
  async push(deviceToken: string, signal: AbortSignal): Promise<ApnsAnswer> {
    const answer = await this.ask(deviceToken, signal);
    // Its time is Apple's to judge: the clock here may be wrong.
    if (answer.reason !== 'ExpiredProviderToken' || this.credentials.push.token === null) {
      return answer;
    }
    this.token = undefined;
    return this.ask(deviceToken, signal);
  }

  close(): void {
    this.closed = true;
    const open = this.session;
    this.session = undefined;
    open?.then(
      (session) => session.destroy(),
      () => undefined,
    );
  }

  private async ask(deviceToken: string, signal: AbortSignal): Promise<ApnsAnswer> {
    signal.throwIfAborted();
    const session = await this.connected();
    const authorization = this.authorization();
    const stream = session.request({
      ':method': 'POST',
      ':path': `/3/device/${deviceToken}`,
      'apns-topic': this.credentials.passTypeId,
      'apns-push-type': 'background',
      'apns-priority': '5',
      'apns-expiration': String(Math.floor(Date.now() / 1000) + KEPT_SECONDS),
      ...(authorization !== null && { authorization }),
    });
    stream.end('{}');
    try {
      return await answerOn(stream, signal, this.times.answerWithinMs);
    } catch (error) {
      // A peer that is silent on one stream is silent on all.
      if (error instanceof SilentError) session.destroy(error);
      throw error;
    }
  }

  private async connected(): Promise<ClientHttp2Session> {
    // One that was just destroyed has not told so yet.
    const session = await this.opened();
    if (!session.closed && !session.destroyed) return session;
    this.session = undefined;
    return this.opened();
  }

  private opened(): Promise<ClientHttp2Session> {
    if (this.closed) throw new Error('the connection to the push service was closed');
    if (this.session) return this.session;
    const opening = this.open();
    this.session = opening;
    const forget = () => {
      if (this.session === opening) this.session = undefined;
    };
    opening.then((session) => {
      // GOAWAY: pushes under way still get their answers, new ones need another connection.
      session.once('goaway', forget);
      session.once('close', forget);
    }, forget);
    return opening;
  }

  private open(): Promise<ClientHttp2Session> {
    const { push, certificate, key, wwdr } = this.credentials;
    return new Promise((resolve, reject) => {
      const session = connect(push.url, {
        ...(push.ca !== null && { ca: push.ca }),
        ...(push.token === null && {
          cert: `${certificate}${wwdr}`,
          key: key.export({ type: 'pkcs8', format: 'pem' }),
        }),
      });
      const late = setTimeout(() => {
        session.destroy(new SilentError('no connection', this.times.connectWithinMs));
      }, this.times.connectWithinMs);
      session.once('connect', () => {
        clearTimeout(late);
        this.keepAlive(session);
        resolve(session);
      });
      // Every fault is told to the pushes that wait for it.
      session.on('error', reject);
      session.once('close', () => {
        clearTimeout(late);
        reject(new Error('the connection was closed'));
      });
    });
  }

  private keepAlive(session: ClientHttp2Session): void {
    const { pingEveryMs, pongWithinMs } = this.times;
    const timer = setInterval(() => {
      if (session.closed || session.destroyed) return;
      const late = setTimeout(() => {
        session.destroy(new SilentError('no pong', pongWithinMs));
      }, pongWithinMs);
      // An error of the ping is one of the session, which is told there.
      session.ping(() => clearTimeout(late));
      session.once('close', () => clearTimeout(late));
    }, pingEveryMs).unref();
    session.once('close', () => clearInterval(timer));
    session.unref();
  }

  /** Null: the certificate speaks for itself. */
  private authorization(): string | null {
    const { token } = this.credentials.push;
    if (token === null) return null;
    const now = Date.now();
    if (!this.token || now - this.token.madeAt > TOKEN_KEPT_MS) {
      const head = encoded({ alg: 'ES256', kid: token.id });
      const claims = encoded({ iss: this.credentials.teamId, iat: Math.floor(now / 1000) });
      const signature = sign('sha256', Buffer.from(`${head}.${claims}`), {
        key: token.key,
        dsaEncoding: 'ieee-p1363',
      });
      const text = `${head}.${claims}.${signature.toString('base64url')}`;
      this.token = { text, madeAt: now };
    }
    return `bearer ${this.token.text}`;
  }
}

class SilentError extends Error {
  constructor(what: string, withinMs: number) {
    super(`${what} within ${withinMs} ms`);
  }
}

function answerOn(
  stream: ClientHttp2Stream,
  signal: AbortSignal,
  withinMs: number,
): Promise<ApnsAnswer> {
  return new Promise((resolve, reject) => {
    let headers: IncomingHttpHeaders = {};
    let body = '';
    const late = setTimeout(() => giveUp(new SilentError('no answer', withinMs)), withinMs);
    const onAbort = () => giveUp(new Error('cut off'));
    const giveUp = (error: Error) => {
      reject(error);
      stream.close(constants.NGHTTP2_CANCEL);
    };
    signal.addEventListener('abort', onAbort);
    // It may have aborted while the connection was opened.
    if (signal.aborted) onAbort();
    stream.setEncoding('utf8');
    stream.once('response', (received) => (headers = received));
    stream.on('data', (chunk: string) => {
      if (body.length < LONGEST_BODY) body += chunk;
    });
    stream.on('error', reject);
    stream.once('close', () => {
      clearTimeout(late);
      signal.removeEventListener('abort', onAbort);
      const { ':status': status } = headers as IncomingHttpStatusHeader;
      if (status === undefined) reject(new Error('the connection ended before the answer'));
      else resolve(answerOf(status, headers, body));
    });
  });
}

function answerOf(status: number, headers: IncomingHttpHeaders, body: string): ApnsAnswer {
  const { reason, timestamp } = jsonOf(body);
  const wait = Number(headers['retry-after']);
  return {
    status,
    reason: typeof reason === 'string' ? reason : '',
    since: typeof timestamp === 'number' ? new Date(timestamp) : null,
    retryInMs: Number.isFinite(wait) && wait > 0 ? wait * 1000 : null,
  };
}

function jsonOf(body: string): { reason?: unknown; timestamp?: unknown } {
  try {
    return (JSON.parse(body) ?? {}) as object;
  } catch {
    // The status alone decides then.
    return {};
  }
}

function encoded(part: object): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url');
}
