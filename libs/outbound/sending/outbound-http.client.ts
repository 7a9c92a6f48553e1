import { Readable } from 'node:stream';
import {
  Agent,
  buildConnector,
  fetch,
  Headers,
  type Dispatcher,
  type RequestInit,
  type Response,
} from 'undici';
import type { Config } from '#configuration/config.js';
import { OutdatedError } from './http-response.js';
import { OutboundTunnels } from './outbound-tunnels.client.js';
import { USER_AGENT } from './user-agent.js';

const CONNECT_TIMEOUT_MS = 10_000;

/** Sends HTTP requests to servers that the operator has configured, through the outgoing proxy if there is one. */
export class OutboundHttp {
  readonly agent: Agent;

  /** @param options for the connections */
  constructor(
    proxy: Config['outboundProxy'],
    options: Omit<Agent.Options, 'connect'> = {},
    tunnels = new OutboundTunnels(proxy),
  ) {
    this.agent = new Agent({ ...options, connect: createConnector(tunnels) });
  }

  /** Fetches. @throws TypeError when no response comes */
  fetch(url: string, request: RequestInit): Promise<Response> {
    return this.send(url, request, this.agent);
  }

  /**
   * Fetches, unless the body went out of date before it was written.
   * @throws TypeError when no response comes, also because nothing was sent
   */
  fetchChecked(url: string, request: RequestInit, mayBeSent: () => boolean): Promise<Response> {
    const dispatcher = this.agent.compose((dispatch) => (options, handler) => {
      const { body } = options;
      // `fetch` turns every body into an async iterable, and sends its length in a header.
      const isIterable = typeof body === 'object' && body !== null && Symbol.asyncIterator in body;
      return dispatch(
        isIterable ? { ...options, body: createCheckedBody(body, mayBeSent) } : options,
        handler,
      );
    });
    return this.send(url, request, dispatcher);
  }

  private send(url: string, request: RequestInit, dispatcher: Dispatcher): Promise<Response> {
    const headers = new Headers(request.headers);
    headers.set('user-agent', USER_AGENT);
    return fetch(url, { ...request, headers, dispatcher });
  }
}

function createConnector(tunnels: OutboundTunnels): buildConnector.connector {
  const connect = buildConnector({ timeout: CONNECT_TIMEOUT_MS });
  if (!tunnels.isNeeded) return connect;
  return (options, callback) => {
    const { protocol, hostname, port } = options;
    const isTls = protocol === 'https:';
    tunnels
      .open(hostname, Number(port) || (isTls ? 443 : 80), CONNECT_TIMEOUT_MS)
      .then((httpSocket) => {
        if (httpSocket === undefined) connect(options, callback);
        else if (isTls) connect({ ...options, httpSocket }, callback);
        // A tunnel without TLS is the connection.
        else callback(null, httpSocket);
      })
      .catch((error: Error) => callback(error, null));
  };
}

/**
 * Creates a body that is written piece by piece, unless it goes out of date. The check is right before each piece, when
 * the connection is open and the headers are sent: both can take seconds, and a process can stall.
 */
export function createCheckedBody(
  body: AsyncIterable<Uint8Array | string>,
  mayBeSent: () => boolean,
): Readable {
  return Readable.from(checkPieces(body, mayBeSent), { objectMode: false });
}

async function* checkPieces(
  body: AsyncIterable<Uint8Array | string>,
  mayBeSent: () => boolean,
): AsyncGenerator<Uint8Array | string> {
  // Not `for await`, which waits for the iterator to return: that of `fetch` never does.
  const pieces = body[Symbol.asyncIterator]();
  for (;;) {
    const piece = await pieces.next();
    if (piece.done === true) return;
    if (!mayBeSent()) throw new OutdatedError();
    yield piece.value;
  }
}
