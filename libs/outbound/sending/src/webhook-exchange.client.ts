import type { Dispatcher } from 'undici';
import {
  BODY_LIMIT,
  OutdatedError,
  START_LIMIT,
  startOf,
  type Answer,
  type Request,
} from './answer.js';
import { DeadlineError, type Deadlines, type Expiring } from './deadlines.client.js';

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
  private encoding: string | undefined;
  private readonly start: Buffer[] = [];
  private size = 0;
  private reason: Error | undefined;
  private slot: Set<Expiring> | undefined;
  private mayBeSent: () => boolean = () => true;

  constructor(private readonly deadlines: Deadlines) {
    this.answer = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
  }

  send(agent: Dispatcher, request: Request): Promise<Answer> {
    const { origin, path, headers, body, mayBeSent } = request;
    if (mayBeSent) this.mayBeSent = mayBeSent;
    this.slot = this.deadlines.add(this);
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
    if (!this.mayBeSent()) this.reason ??= new OutdatedError();
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
    const { 'retry-after': retryAfter, 'content-encoding': encoding } = headers;
    if (typeof encoding === 'string') this.encoding = encoding;
    if (typeof retryAfter === 'string') this.retryAfter = retryAfter;
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.size < START_LIMIT) this.start.push(startOf(chunk, START_LIMIT - this.size));
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
      this.slot?.delete(this);
      this.reject(error);
    }
  }

  private finish(): void {
    this.slot?.delete(this);
    const { status, retryAfter, encoding, start } = this;
    this.resolve({ status, retryAfter, encoding, start });
  }

  private cut(): void {
    this.reason ??= new Error('cut off');
    this.controller?.abort(this.reason);
  }
}
