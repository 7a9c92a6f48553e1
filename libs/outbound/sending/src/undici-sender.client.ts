import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import type { Agent, DiagnosticsChannel } from 'undici';
import type { Answer, Request } from './answer.js';
import type { Deadlines } from './deadlines.client.js';
import { Exchange } from './webhook-exchange.client.js';

const SEND_HEADERS = 'undici:client:sendHeaders';

/** The connection that a request was written to, and how many bytes it had received by then. */
type Sending = { socket: Socket; bytesRead: number; reused: boolean };

/** Sends through undici's own client (WEBHOOK_HTTP_CLIENT=undici). */
export class UndiciSender {
  private readonly sendings = new WeakMap<Buffer, Sending | undefined>();
  private readonly used = new WeakSet<Socket>();

  constructor(
    private readonly agent: Agent,
    private readonly deadlines: Deadlines,
  ) {
    subscribe(SEND_HEADERS, this.onSend);
  }

  async send(request: Request): Promise<Answer> {
    // A view of its own identifies this request: the same bytes may be going to several subscriptions at once.
    const body = request.body.subarray();
    const identified = { ...request, body };
    this.sendings.set(body, undefined);
    const first = new Exchange(this.deadlines);
    try {
      return await first.send(this.agent, identified);
    } catch (error) {
      // Receivers close idle connections, possibly just as one is used again. There was no answer, so the request is
      // sent once more; a receiver that did get the first one recognises the webhook-id.
      if (!this.diedIdle(body) || first.hasExpired) throw error;
      return await new Exchange(this.deadlines).send(this.agent, identified);
    }
  }

  async close(): Promise<void> {
    unsubscribe(SEND_HEADERS, this.onSend);
    await this.agent.destroy();
  }

  /** This channel is the only place where the library tells which connection a request is written to. */
  private readonly onSend = (message: unknown): void => {
    const { request: sent, socket } = message as DiagnosticsChannel.ClientSendHeadersMessage & {
      request: { body?: unknown };
      socket: Socket;
    };
    if (!(sent.body instanceof Buffer) || !this.sendings.has(sent.body)) return;
    const reused = this.used.has(socket);
    this.sendings.set(sent.body, { socket, bytesRead: socket.bytesRead, reused });
    this.used.add(socket);
  };

  /** Whether a connection that had been used before ended without a byte of an answer. */
  private diedIdle(bytes: Buffer): boolean {
    const sending = this.sendings.get(bytes);
    return (
      sending !== undefined && sending.reused && sending.socket.bytesRead === sending.bytesRead
    );
  }
}
