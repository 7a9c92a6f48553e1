import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';

const EXECUTE = 'E'.charCodeAt(0);
const SIMPLE_QUERY = 'Q'.charCodeAt(0);

/** Stands between one process and PostgreSQL, and counts the statements that the process sends. */
export class StatementCounter {
  count = 0;
  private readonly sockets = new Set<Socket>();

  private constructor(
    private readonly server: Server,
    private readonly database: URL,
  ) {}

  static async to(databaseUrl: string): Promise<StatementCounter> {
    const server = createServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const counter = new StatementCounter(server, new URL(databaseUrl));
    server.on('connection', (socket) => counter.join(socket));
    return counter;
  }

  get url(): string {
    const url = new URL(this.database);
    const address = this.server.address();
    if (address === null || typeof address === 'string') throw new Error('it does not listen');
    url.hostname = '127.0.0.1';
    url.port = String(address.port);
    return url.href;
  }

  get connectionCount(): number {
    return this.sockets.size / 2;
  }

  async close(): Promise<void> {
    const closed = once(this.server, 'close');
    this.server.close();
    for (const socket of this.sockets) socket.destroy();
    await closed;
  }

  private join(from: Socket): void {
    const to = connect(Number(this.database.port), this.database.hostname);
    const messages = new FrontendMessages((type) => {
      if (type === EXECUTE || type === SIMPLE_QUERY) this.count++;
    });
    from.on('data', (chunk) => {
      messages.take(chunk);
      to.write(chunk);
    });
    to.on('data', (chunk) => from.write(chunk));
    for (const [one, other] of [
      [from, to],
      [to, from],
    ] as const) {
      this.sockets.add(one);
      one.setNoDelay();
      one.on('error', () => one.destroy());
      one.on('close', () => {
        this.sockets.delete(one);
        other.destroy();
      });
    }
  }
}

/** Splits what a client sends: a first message without a type, then a letter, a length and that much less four bytes. */
class FrontendMessages {
  private rest = Buffer.alloc(0);
  private hasStarted = false;
  /** How much of the present message is still to come; it is not looked at. */
  private skipped = 0;

  constructor(private readonly onMessage: (type: number) => void) {}

  take(chunk: Buffer): void {
    let bytes = Buffer.concat([this.rest, chunk]);
    for (;;) {
      const passed = Math.min(this.skipped, bytes.length);
      bytes = bytes.subarray(passed);
      this.skipped -= passed;
      const head = this.hasStarted ? 5 : 4;
      if (this.skipped > 0 || bytes.length < head) break;
      const [type = 0] = bytes;
      if (this.hasStarted) this.onMessage(type);
      this.skipped = bytes.readUInt32BE(head - 4) + head - 4;
      this.hasStarted = true;
    }
    this.rest = bytes;
  }
}
