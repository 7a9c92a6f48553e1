import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

/** Between a program and its database: can be cut, and can fall silent without closing anything. */
export class Line {
  private readonly sockets = new Set<Socket>();
  private muted = false;

  private constructor(
    private server: Server,
    private readonly port: number,
    private readonly database: URL,
  ) {}

  static async to(databaseUrl: string): Promise<Line> {
    const server = createServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const line = new Line(server, port, new URL(databaseUrl));
    server.on('connection', (socket) => line.join(socket));
    return line;
  }

  get url(): string {
    const url = new URL(this.database);
    url.hostname = '127.0.0.1';
    url.port = String(this.port);
    return url.href;
  }

  async cut(): Promise<void> {
    const closed = once(this.server, 'close');
    this.server.close();
    for (const socket of this.sockets) socket.destroy();
    await closed;
  }

  async mend(): Promise<void> {
    this.server = createServer((socket) => this.join(socket));
    this.server.listen(this.port, '127.0.0.1');
    await once(this.server, 'listening');
  }

  /** All connections, those to come as well. */
  mute(): void {
    this.muted = true;
    this.muteOpen();
  }

  /** Those that are open now, for good, as after a failover: new ones are as they should be. */
  muteOpen(): void {
    for (const socket of this.sockets) socket.pause();
  }

  /** What the database answers is lost on the way; what it is asked still arrives. */
  muteAnswers(): void {
    for (const socket of this.sockets) if (socket.localPort !== this.port) socket.pause();
  }

  unmute(): void {
    this.muted = false;
    for (const socket of this.sockets) socket.resume();
  }

  close(): Promise<void> {
    return this.cut();
  }

  private join(from: Socket): void {
    const to = connect(Number(this.database.port), this.database.hostname);
    for (const [one, other] of [
      [from, to],
      [to, from],
    ] as const) {
      this.sockets.add(one);
      one.on('data', (chunk) => other.write(chunk));
      one.on('close', () => {
        this.sockets.delete(one);
        other.destroy();
      });
      // Each end that is cut off takes the other with it, above.
      one.on('error', () => one.destroy());
      if (this.muted) one.pause();
    }
  }
}
