import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { findFreePort } from '../services/program.js';

/** Forwards connections to a database, and cuts or silences them. */
export class DatabaseProxy {
  private readonly sockets = new Set<Socket>();
  private muted = false;
  /** To which new connections lead in turn; none: all to the database. */
  private targets: URL[] = [];
  /** How often data was sent to the database. */
  requestCount = 0;

  private constructor(
    private server: Server,
    private readonly port: number,
    private database: URL,
  ) {}

  static async to(databaseUrl: string): Promise<DatabaseProxy> {
    const port = await findFreePort();
    const server = createServer();
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    const line = new DatabaseProxy(server, port, new URL(databaseUrl));
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

  /** Leads new connections to another server, and cuts the open ones. */
  switchTo(databaseUrl: string): void {
    this.database = new URL(databaseUrl);
    this.targets = [];
    for (const socket of this.sockets) socket.destroy();
  }

  /** Leads new connections to several servers in turn, as a proxy that takes both for the primary, and cuts no open one. */
  alternate(...databaseUrls: string[]): void {
    this.targets = databaseUrls.map((url) => new URL(url));
  }

  /** Silences all connections, including new ones. */
  mute(): void {
    this.muted = true;
    this.muteOpen();
  }

  /** Silences the open connections for good, as after a failover; new ones work normally. */
  muteOpen(): void {
    for (const socket of this.sockets) socket.pause();
  }

  /** Drops the database's responses, while requests still reach it. */
  muteResponses(): void {
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
    const next = this.targets.shift();
    if (next) this.targets.push(next);
    const { port, hostname } = next ?? this.database;
    const to = connect(Number(port), hostname);
    for (const [one, other] of [
      [from, to],
      [to, from],
    ] as const) {
      this.sockets.add(one);
      // Without it, Nagle's algorithm and delayed acknowledgements would add 40 ms.
      one.setNoDelay();
      one.on('data', (chunk) => {
        if (one === from) this.requestCount++;
        other.write(chunk);
      });
      one.on('close', () => {
        this.sockets.delete(one);
        other.destroy();
      });
      // When one end is cut off, the other one is closed as well (above).
      one.on('error', () => one.destroy());
      if (this.muted) one.pause();
    }
  }
}
