import { channel } from 'node:diagnostics_channel';
import { errors, type buildConnector } from 'undici';
import type { ReceiverResponse, WebhookRequest } from './http-response.js';
import type { Deadlines } from './deadlines.client.js';
import { HttpConnection, HttpExchange, type Origin } from './http-connection.client.js';

/** The diagnostics channel that each new connection is published to. */
export const CONNECTED = 'inkpad:webhooks:connected';

const SWEEP_INTERVAL_MS = 1_000;
const SENDABLE = /^[\t\x20-\x7e]*$/;

const connections = channel(CONNECTED);

/**
 * Posts over HTTP/1.1, one request at a time on each connection, and over as many connections as there are concurrent
 * requests, which the caller limits. The status decides the outcome, so the body is read only as far as needed.
 */
export class HttpConnections {
  private readonly origins = new Map<string, Origin>();
  private readonly all = new Set<HttpConnection>();
  private waiting: HttpExchange[] = [];
  private sweeper: NodeJS.Timeout | undefined;
  private isStopped = false;

  constructor(
    private readonly connect: buildConnector.connector,
    private readonly deadlines: Deadlines,
  ) {}

  /** Sends a request. @throws DeadlineError, InvalidResponseError or an error of the connection without a response */
  send(request: WebhookRequest): Promise<ReceiverResponse> {
    return new Promise((resolve, reject) => {
      if (this.isStopped) throw new errors.ClientDestroyedError();
      const bytes = toBytes(request);
      const { origin, mayBeSent = () => true } = request;
      const exchange = new HttpExchange(origin, bytes, mayBeSent, this.deadlines, resolve, reject);
      // Once for all requests of this turn, and only after reading what has arrived: a connection that has ended, or that
      // has received bytes without a request, is not reused.
      if (this.waiting.push(exchange) === 1) setImmediate(() => this.sendWaiting());
    });
  }

  close(): Promise<void> {
    this.isStopped = true;
    const error = new errors.ClientDestroyedError();
    for (const exchange of this.waiting) exchange.fail(error);
    for (const connection of this.all) connection.close(error);
    return Promise.resolve();
  }

  handleConnected(): void {
    connections.publish({});
  }

  handleReleased(connection: HttpConnection): void {
    connection.origin.idle.push(connection);
    this.sweeper ??= setInterval(() => this.sweep(), SWEEP_INTERVAL_MS).unref();
  }

  /**
   * Sends a request once more, on a new connection, when not a byte came back: receivers close idle connections,
   * possibly just as one is reused. A receiver that did get the first request recognises the webhook-id.
   */
  handleFailure(connection: HttpConnection, exchange: HttpExchange, error: Error): void {
    if (connection.isReused && !this.isStopped && !exchange.response.hasBegun)
      this.open(exchange.restart());
    else exchange.fail(error);
  }

  handleClosed(connection: HttpConnection): void {
    this.all.delete(connection);
    const { origin } = connection;
    const index = origin.idle.indexOf(connection);
    if (index !== -1) origin.idle.splice(index, 1);
    if (--origin.openCount === 0) this.origins.delete(origin.origin);
    if (this.all.size > 0) return;
    clearInterval(this.sweeper);
    this.sweeper = undefined;
  }

  private sendWaiting(): void {
    const exchanges = this.waiting;
    this.waiting = [];
    for (const exchange of exchanges) {
      if (exchange.isSettled) continue;
      const connection = this.takeIdle(exchange.origin);
      if (connection) connection.send(exchange);
      else this.open(exchange);
    }
  }

  private takeIdle(origin: string): HttpConnection | undefined {
    const { idle = [] } = this.origins.get(origin) ?? {};
    for (let connection = idle.pop(); connection; connection = idle.pop()) {
      if (connection.canBeUsed) return connection;
      connection.close();
    }
    return undefined;
  }

  private open(exchange: HttpExchange): void {
    let origin = this.origins.get(exchange.origin);
    if (!origin) this.origins.set(exchange.origin, (origin = createOrigin(exchange.origin)));
    origin.openCount++;
    const connection = new HttpConnection(this, origin, exchange);
    this.all.add(connection);
    connection.open(this.connect);
  }

  private sweep(): void {
    for (const { idle } of this.origins.values()) {
      for (const connection of idle.filter(({ canBeUsed }) => !canBeUsed)) connection.close();
    }
  }
}

function createOrigin(origin: string): Origin {
  const { protocol, hostname, host, port } = new URL(origin);
  return {
    origin,
    protocol,
    hostname: hostname.replace(/^\[(.*)\]$/, '$1'),
    host,
    port,
    idle: [],
    openCount: 0,
  };
}

/** Joins head and body, so that they are written together. */
function toBytes({ origin, path, headers, body }: WebhookRequest): Buffer {
  let head = `POST ${path} HTTP/1.1\r\nhost: ${origin.slice(origin.indexOf('//') + 2)}\r\nconnection: keep-alive\r\n`;
  for (const [name, value] of Object.entries(headers)) {
    if (!SENDABLE.test(value)) throw new errors.InvalidArgumentError(`invalid ${name} header`);
    head += `${name}: ${value}\r\n`;
  }
  head += `content-length: ${body.length}\r\n\r\n`;
  const bytes = Buffer.allocUnsafe(head.length + body.length);
  bytes.write(head, 'latin1');
  body.copy(bytes, head.length);
  return bytes;
}
