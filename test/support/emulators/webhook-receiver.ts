import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook, WebhookVerificationError } from 'standardwebhooks';

export type Received = {
  /** With the query. */
  path: string;
  headers: http.IncomingHttpHeaders;
  /** The raw bytes. */
  text: string;
  body: Record<string, unknown>;
  at: number;
};

export type Reply = { status: number; headers?: Record<string, string>; body?: string | Buffer };

/** A webhook receiver that stores what it receives and responds as configured. */
export class Receiver {
  readonly received: Received[] = [];

  private constructor(
    private readonly server: http.Server,
    /** `nth` counts requests from 1. */
    public reply: (received: Received, nth: number) => Reply | Promise<Reply>,
  ) {}

  static async start(
    reply: (received: Received, nth: number) => Reply | Promise<Reply> = () => ({ status: 200 }),
  ): Promise<Receiver> {
    const server = http.createServer();
    const receiver = new Receiver(server, reply);
    server.on('request', (request, response) => void receiver.receive(request, response));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return receiver;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/hooks`;
  }

  /** Every event once, in order of first arrival. */
  get events(): Received[] {
    const seen = new Set<unknown>();
    return this.received.filter(({ headers }) => {
      const id = headers['webhook-id'];
      return !seen.has(id) && seen.add(id);
    });
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private async receive(
    request: http.IncomingMessage,
    response: http.ServerResponse,
  ): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    const received = {
      path: request.url ?? '',
      headers: request.headers,
      text,
      body: JSON.parse(text) as Received['body'],
      at: Date.now(),
    };
    const nth = this.received.push(received);
    const { status, headers, body } = await this.reply(received, nth);
    response.writeHead(status, headers).end(body);
  }
}

/** Verified by the package that receivers use, not by the code that signs. */
export function isSigned({ headers, text }: Received, secret: string): boolean {
  try {
    new Webhook(secret).verify(text, headers as Record<string, string>);
    return true;
  } catch (error) {
    if (error instanceof WebhookVerificationError) return false;
    throw error;
  }
}
