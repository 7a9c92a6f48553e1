import { StringDecoder } from 'node:string_decoder';
import type { Dispatcher } from 'undici';

const BODY_LIMIT = 64 * 1024;
const EXCERPT_LIMIT = 1024;

export type Request = {
  origin: string;
  /** Includes the query string. */
  path: string;
  headers: Record<string, string>;
  body: Buffer;
};

export type Answer = {
  status: number;
  retryAfter: string | null;
  /** The beginning of the answer's body. */
  excerpt: string | null;
};

/** No response headers arrived in time. */
export class DeadlineError extends Error {}

/**
 * One request and its answer, on the library's lowest level: with a promise, a stream, a signal and a timer for each,
 * requests cost three times as much. The status decides the outcome; only as much of the body is read as is needed, and
 * the rest is cut off.
 * @throws DeadlineError, and what the library reports when no answer comes
 */
export class Exchange implements Dispatcher.DispatchHandler {
  private readonly answer: Promise<Answer>;
  private resolve: (answer: Answer) => void = () => undefined;
  private reject: (error: unknown) => void = () => undefined;
  private controller: Dispatcher.DispatchController | undefined;
  private status = 0;
  private retryAfter: string | null = null;
  private readonly start: Buffer[] = [];
  private size = 0;
  private reason: Error | undefined;

  constructor(private readonly deadlines: Deadlines) {
    this.answer = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
  }

  send(agent: Dispatcher, { origin, path, headers, body }: Request): Promise<Answer> {
    this.deadlines.add(this);
    agent.dispatch({ origin, path, method: 'POST', headers, body }, this);
    return this.answer;
  }

  get hasExpired(): boolean {
    return this.reason !== undefined;
  }

  /**
   * The deadline has passed: without response headers the request has failed; otherwise the body received so far will
   * do.
   */
  expire(): void {
    if (this.status > 0) this.finish();
    else this.reject(new DeadlineError());
    this.cut();
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller;
    if (this.reason) controller.abort(this.reason);
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    // An interim answer (1xx); the real one follows.
    if (status < 200) return;
    this.status = status;
    const { 'retry-after': retryAfter } = headers;
    if (typeof retryAfter === 'string') this.retryAfter = retryAfter;
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.size < EXCERPT_LIMIT) this.start.push(chunk);
    this.size += chunk.length;
    if (this.size <= BODY_LIMIT) return;
    this.finish();
    this.cut();
  }

  onResponseEnd(): void {
    this.finish();
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    if (this.status > 0) this.finish();
    else {
      this.deadlines.delete(this);
      this.reject(error);
    }
  }

  private finish(): void {
    this.deadlines.delete(this);
    const { status, retryAfter } = this;
    const excerpt = this.size === 0 ? null : asText(Buffer.concat(this.start));
    this.resolve({ status, retryAfter, excerpt });
  }

  private cut(): void {
    this.reason ??= new Error('cut off');
    this.controller?.abort(this.reason);
  }
}

const SLOT_MS = 100;

/**
 * Every exchange has the same time allowed, so those that began within the same 100 ms share an entry, and one timer
 * serves all.
 */
export class Deadlines {
  private slots: { at: number; exchanges: Set<Exchange> }[] = [];
  private readonly slotOf = new WeakMap<Exchange, Set<Exchange>>();
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly milliseconds: number) {}

  add(exchange: Exchange): void {
    const now = performance.now();
    let slot = this.slots.at(-1);
    if (!slot || now >= slot.at - this.milliseconds) {
      slot = { at: now + SLOT_MS + this.milliseconds, exchanges: new Set() };
      this.slots.push(slot);
      this.timer ??= this.wakeIn(this.milliseconds + SLOT_MS);
    }
    slot.exchanges.add(exchange);
    this.slotOf.set(exchange, slot.exchanges);
  }

  delete(exchange: Exchange): void {
    this.slotOf.get(exchange)?.delete(exchange);
  }

  private expire(): void {
    const now = performance.now();
    for (let slot = this.slots[0]; slot && slot.at <= now; slot = this.slots[0]) {
      this.slots.shift();
      for (const exchange of slot.exchanges) exchange.expire();
    }
    const [first] = this.slots;
    this.timer = first && this.wakeIn(Math.max(1, first.at - now));
  }

  /** Does not keep the process running by itself. */
  private wakeIn(milliseconds: number): NodeJS.Timeout {
    return setTimeout(() => this.expire(), milliseconds).unref();
  }
}

/** At most 1 KiB, and without anything that the database could not store. */
function asText(bytes: Buffer): string {
  // Drops a character that was cut in half.
  const cut = (buffer: Buffer) => new StringDecoder().write(buffer.subarray(0, EXCERPT_LIMIT));
  const text = cut(bytes).replaceAll('\0', '\uFFFD');
  return Buffer.byteLength(text) > EXCERPT_LIMIT ? cut(Buffer.from(text)) : text;
}
