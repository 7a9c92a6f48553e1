import {
  createServer,
  request as sendRequest,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo, Socket } from 'node:net';

/**
 * What the network does with requests: passes them on, accepts them and says nothing, or sends the head of the response and
 * then nothing.
 */
export type NetworkMode = 'open' | 'silent' | 'head only';

export type SilentNetwork = {
  baseUrl: string;
  setMode: (mode: NetworkMode) => void;
  /** Lets everything through that was held back, as late as it is. */
  release: () => void;
  /** Lists the paths of the requests that are held back. */
  listHeld: () => string[];
  close: () => Promise<void>;
};

/** Forwards requests to a service, through a network that may go silent. */
export async function startSilentNetwork(baseUrl: string): Promise<SilentNetwork> {
  const { hostname, port } = new URL(baseUrl);
  const sockets = new Set<Socket>();
  let mode: NetworkMode = 'open';
  const waiting: { path: string; go: () => void }[] = [];

  const forward = (request: IncomingMessage, response: ServerResponse, isHeadOnly: boolean) => {
    const { method, url: path, headers } = request;
    const outbound = sendRequest({ hostname, port, method, path, headers }, (inbound) => {
      response.writeHead(inbound.statusCode ?? 502, inbound.headers);
      response.flushHeaders();
      const go = () => void inbound.pipe(response);
      if (isHeadOnly) waiting.push({ path: path ?? '', go });
      else go();
    });
    outbound.on('error', () => response.destroy());
    response.on('close', () => outbound.destroy());
    request.pipe(outbound);
  };
  const server = createServer((request, response) => {
    if (mode !== 'silent') return forward(request, response, mode === 'head only');
    waiting.push({ path: request.url ?? '', go: () => forward(request, response, false) });
  });
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    setMode: (next) => (mode = next),
    release: () => {
      for (const { go } of waiting.splice(0)) go();
    },
    listHeld: () => waiting.map(({ path }) => path),
    close: () => {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
