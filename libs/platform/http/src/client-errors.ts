import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { newId } from '#kernel/randomness.js';

type Fault = { status: string; code: string; error: string };

const NOT_HTTP: Fault = {
  status: '400 Bad Request',
  code: 'malformed_request',
  error: 'This is not an HTTP request',
};
const FAULTS: Record<string, Fault> = {
  HPE_HEADER_OVERFLOW: {
    status: '431 Request Header Fields Too Large',
    code: 'header_fields_too_large',
    error: 'The header is larger than 16 KiB',
  },
  ERR_HTTP_REQUEST_TIMEOUT: {
    status: '408 Request Timeout',
    code: 'request_timeout',
    error: 'The request did not arrive in time',
  },
};

/**
 * Words what Node finds wrong before there is a request to answer, its time-outs included. A client
 * takes whatever comes next on its connection for the answer to what it sent first. So nothing is said
 * while a request that has arrived whole waits for its answer: that may be committed, and clients send
 * again after a 408 (contract section 1).
 */
export class ClientErrors {
  private readonly open = new WeakMap<Socket, Set<ServerResponse>>();

  watch(server: Server): void {
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      const { socket } = request;
      const responses = this.open.get(socket) ?? new Set();
      this.open.set(socket, responses.add(response));
      // An answer given early leaves a request behind that is still coming in.
      const forget = () => {
        if (request.complete && response.closed) responses.delete(response);
      };
      request.once('close', forget);
      response.once('close', forget);
    });
    // Of expectations only 100-continue is known, which Node meets by itself; others may be ignored.
    server.on('checkExpectation', (...both) => server.emit('request', ...both));
  }

  answer(error: NodeJS.ErrnoException, socket: Socket, documentationUrl: string): void {
    const responses = [...(this.open.get(socket) ?? [])];
    const spokenFor = responses.some(({ req, headersSent }) => req.complete || headersSent);
    if (spokenFor || !socket.writable) {
      socket.destroy();
      return;
    }
    const fault = FAULTS[error.code ?? ''] ?? NOT_HTTP;
    const requestId = newId();
    const body = JSON.stringify({
      error: fault.error,
      code: fault.code,
      documentation_url: documentationUrl,
      request_id: requestId,
    });
    const head = [
      `HTTP/1.1 ${fault.status}`,
      'Content-Type: application/json; charset=utf-8',
      `Content-Length: ${Buffer.byteLength(body)}`,
      `X-Request-Id: ${requestId}`,
      'Cache-Control: no-store',
      'Connection: close',
    ];
    socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
  }
}
