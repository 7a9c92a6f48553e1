import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

export type Exchange = {
  method: string;
  /** With the query. */
  path: string;
  status: number;
  headers: http.IncomingHttpHeaders;
  body: unknown;
};

/** Where a program that is tested says that a step of it is done, and waits until it may go on. */
export const NEXT = '/next';

/** Stands in front of a service and records the requests and responses of programs in any language. */
export class RecordingProxy {
  private exchanges: Exchange[] = [];
  private waiting: http.ServerResponse | undefined;

  private constructor(
    private readonly server: http.Server,
    private readonly baseUrl: string,
  ) {}

  static async start(baseUrl: string): Promise<RecordingProxy> {
    const server = http.createServer();
    const recorder = new RecordingProxy(server, baseUrl);
    server.on('request', (request, response) => {
      recorder.pass(request, response).catch((error: unknown) => response.destroy(Object(error)));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return recorder;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  get isWaitedFor(): boolean {
    return this.waiting !== undefined;
  }

  /** Lets the program go on that waits, if one does. */
  goOn(): void {
    this.waiting?.writeHead(204).end();
    this.waiting = undefined;
  }

  /** Returns the exchanges since the last call. */
  take(): Exchange[] {
    return this.exchanges.splice(0);
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private async pass(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const { method = '', url: path = '' } = request;
    if (path === NEXT) {
      this.waiting = response;
      return;
    }
    const headers = { ...request.headers, 'accept-encoding': 'identity' };
    const forwarded = http.request(this.baseUrl + path, { method, headers });
    request.pipe(forwarded);
    const [received] = (await once(forwarded, 'response')) as [http.IncomingMessage];
    const responseText = await text(received);
    const { statusCode: status = 0 } = received;
    const isJson = received.headers['content-type']?.includes('json') === true;
    const body: unknown = isJson ? JSON.parse(responseText) : responseText;
    this.exchanges.push({ method, path, status, headers: received.headers, body });
    response.writeHead(status, received.headers).end(responseText);
  }
}
