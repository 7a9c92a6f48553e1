import type { Socket } from 'node:net';
import { errors, type buildConnector } from 'undici';
import { DeadlineError, type Deadlines, type Expiring } from './deadlines.client.js';
import { CONNECTION_MS, InvalidResponseError, KEEP_ALIVE_MS } from './guarded-agent.client.js';
import {
  HttpResponse,
  MAX_BODY_BYTES,
  MAX_START_BYTES,
  OutdatedError,
  type ReceiverResponse,
} from './http-response.js';

/** A connection is closed this much earlier than its receiver says, because the next request has to arrive in time. */
const KEEP_ALIVE_MARGIN_MS = 2_000;
const TIMEOUT = /(?:^|[,;\s])timeout=(\d{1,9})/i;

/** Holds a request and its response so far, and settles once it is over. */
export class HttpExchange {
  response = new HttpResponse(MAX_START_BYTES);
  connection: HttpConnection | undefined;
  isSettled = false;
  private deadlineSlot: Set<Expiring>;

  constructor(
    readonly origin: string,
    readonly bytes: Buffer,
    readonly mayBeSent: () => boolean,
    private readonly deadlines: Deadlines,
    private readonly resolve: (response: ReceiverResponse) => void,
    private readonly reject: (error: Error) => void,
  ) {
    this.deadlineSlot = deadlines.add(this);
  }

  /** Ends the exchange at its deadline: it fails without a head, otherwise the body received so far is enough. */
  expire(): void {
    if (this.response.head) this.complete();
    else this.fail(new DeadlineError());
    this.connection?.close();
  }

  complete(): void {
    const { head, start, isWhole } = this.response;
    if (!head || !this.settle()) return;
    const { status } = head;
    const retryAfter = this.response.getField('retry-after') ?? null;
    const encoding = this.response.getField('content-encoding');
    this.resolve({ status, retryAfter, encoding, start, isWhole });
  }

  fail(error: Error): void {
    if (this.settle()) this.reject(error);
  }

  /** Starts over with the full deadline. */
  restart(): this {
    this.response = new HttpResponse(MAX_START_BYTES);
    this.deadlineSlot.delete(this);
    this.deadlineSlot = this.deadlines.add(this);
    return this;
  }

  private settle(): boolean {
    if (this.isSettled) return false;
    this.isSettled = true;
    this.deadlineSlot.delete(this);
    return true;
  }
}

/** The connections to one origin. */
export type Origin = Omit<buildConnector.Options, 'port'> & {
  port: string;
  origin: string;
  /** The last to become idle is used first. */
  idle: HttpConnection[];
  /** How many there are, idle or not. */
  openCount: number;
};

type ConnectionPool = {
  handleConnected(): void;
  handleReleased(connection: HttpConnection): void;
  /** Handles a connection that failed before a head was complete. */
  handleFailure(connection: HttpConnection, exchange: HttpExchange, error: Error): void;
  handleClosed(connection: HttpConnection): void;
};

/** Carries one request at a time over one connection. */
export class HttpConnection {
  private socket: Socket | undefined;
  private error: Error | undefined;
  private isClosed = false;
  private responseCount = 0;
  private openedAt = 0;
  private idleUntil = Infinity;

  constructor(
    private readonly pool: ConnectionPool,
    readonly origin: Origin,
    private exchange: HttpExchange | undefined,
  ) {
    if (exchange) exchange.connection = this;
  }

  open(connect: buildConnector.connector): void {
    connect(this.origin, (error, socket) => {
      if (error) this.close(error);
      else if (this.isClosed) socket.destroy();
      else this.onOpen(socket);
    });
  }

  get isReused(): boolean {
    return this.responseCount > 0;
  }

  get canBeUsed(): boolean {
    const now = performance.now();
    return now < this.idleUntil && now - this.openedAt <= CONNECTION_MS;
  }

  send(exchange: HttpExchange): void {
    this.exchange = exchange;
    exchange.connection = this;
    this.idleUntil = Infinity;
    if (this.socket) this.write(this.socket, exchange);
  }

  /** Closes the connection. @param error the reason why its exchange, if there is one, has no response */
  close(error: Error = this.error ?? new errors.SocketError('closed')): void {
    if (this.isClosed) return;
    this.isClosed = true;
    const { exchange } = this;
    this.exchange = undefined;
    this.pool.handleClosed(this);
    this.socket?.destroy();
    if (!exchange || exchange.isSettled) return;
    if (exchange.response.head) exchange.complete();
    else this.pool.handleFailure(this, exchange, error);
  }

  private onOpen(socket: Socket): void {
    this.socket = socket;
    this.openedAt = performance.now();
    this.pool.handleConnected();
    socket.on('data', (bytes) => this.read(bytes));
    socket.on('error', (error) => (this.error = error));
    socket.on('end', () => this.onEnd());
    socket.on('close', () => this.close());
    if (this.exchange) this.write(socket, this.exchange);
  }

  private write(socket: Socket, exchange: HttpExchange): void {
    if (exchange.mayBeSent()) socket.write(exchange.bytes);
    else {
      exchange.fail(new OutdatedError());
      this.close();
    }
  }

  private read(bytes: Buffer): void {
    const { exchange } = this;
    // There is no request that these bytes could respond to.
    if (!exchange) return this.close();
    const { response } = exchange;
    response.read(bytes);
    if (response.error !== undefined) {
      this.close(
        response.error === 'too large'
          ? new errors.HeadersOverflowError()
          : new InvalidResponseError(),
      );
    } else if (response.isOver) this.onResponseEnd(exchange);
    else if (response.size > MAX_BODY_BYTES) this.close();
  }

  private onResponseEnd(exchange: HttpExchange): void {
    this.responseCount++;
    const { response } = exchange;
    if (!response.isReusable) return this.close();
    this.exchange = undefined;
    this.idleUntil = performance.now() + getIdleMs(response.getField('keep-alive'));
    exchange.complete();
    if (this.isWritten) this.pool.handleReleased(this);
    // A TLS socket reports a finished write one turn of the event loop later, possibly after a quick response.
    else setImmediate(() => this.release());
  }

  private release(): void {
    if (this.isClosed) return;
    if (this.isWritten) this.pool.handleReleased(this);
    // The response came before the receiver had read the request, which is still being written.
    else this.close();
  }

  private get isWritten(): boolean {
    return this.socket?.writableLength === 0;
  }

  private onEnd(): void {
    this.exchange?.response.end();
    this.close();
  }
}

/** Finds how long a connection may stay idle, by the Keep-Alive header of the response. */
function getIdleMs(header: string | undefined): number {
  const [, seconds] = TIMEOUT.exec(header ?? '') ?? [];
  return seconds === undefined
    ? KEEP_ALIVE_MS
    : Math.min(KEEP_ALIVE_MS, Number(seconds) * 1000 - KEEP_ALIVE_MARGIN_MS);
}
