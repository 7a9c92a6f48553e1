import http from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';

export type TunnelRequest = { authority: string; authorization: string | undefined };

/** An HTTP proxy whose tunnels all lead to this machine, at the port that was asked for. */
export class ConnectProxy {
  readonly requests: TunnelRequest[] = [];
  /** Requests that were refused because they ask for no tunnel. */
  otherRequestCount = 0;
  private readonly sockets = new Set<Socket>();

  private constructor(
    private readonly server: http.Server,
    /** Returns the status for a tunnel to an authority; 200 opens it, and 0 leaves the request without a response. */
    public decide: (authority: string) => number,
  ) {}

  static async start(decide: (authority: string) => number = () => 200): Promise<ConnectProxy> {
    const server = http.createServer();
    const proxy = new ConnectProxy(server, decide);
    server.on('request', (_request, response: http.ServerResponse) => {
      proxy.otherRequestCount++;
      response.writeHead(405).end();
    });
    server.on('connection', (socket) => proxy.sockets.add(socket));
    server.on('connect', (request, socket: Socket) => proxy.open(request, socket));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  async stop(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private open({ url: authority = '', headers }: http.IncomingMessage, socket: Socket): void {
    this.requests.push({ authority, authorization: headers['proxy-authorization'] });
    socket.on('error', () => socket.destroy());
    const status = this.decide(authority);
    if (status === 0) return;
    if (status !== 200) {
      socket.end(`HTTP/1.1 ${status} Refused\r\ncontent-length: 0\r\n\r\n`);
      return;
    }
    const target = connect(Number(authority.split(':').at(-1)), '127.0.0.1');
    this.sockets.add(target);
    target.on('error', () => socket.destroy());
    target.on('connect', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      socket.pipe(target).pipe(socket);
    });
  }
}
