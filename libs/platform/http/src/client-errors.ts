import { Logger } from '@nestjs/common';
import { STATUS_CODES, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { PlatformConfig } from '#kernel/platform-config.js';
import { getErrorMessage } from '#kernel/errors.js';
import { createId } from '#kernel/randomness.js';
import { answerOf, errorJson } from './error-answer.js';
import { limitHeaders, type Usage } from './rate-limit.js';
import { retirementHeaders } from './versioning.js';

const NOT_HTTP = 'malformed_request';
const CODES: Record<string, 'header_fields_too_large' | 'request_timeout'> = {
  HPE_HEADER_OVERFLOW: 'header_fields_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
};

/**
 * Answers the faults that Node finds before there is a request to answer, time-outs included. A client takes
 * the next bytes on its connection as the answer to its oldest request. So nothing is sent while a complete
 * request waits for its answer: it may be committed, and clients send again after a 408 (contract section 1).
 */
export class ClientErrors {
  private readonly log = new Logger('Errors');
  private readonly open = new WeakMap<Socket, Set<ServerResponse>>();
  private readonly answered = new WeakSet<Socket>();

  constructor(private readonly config: PlatformConfig) {}

  watch(server: Server): void {
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      const { socket } = request;
      const responses = this.open.get(socket) ?? new Set();
      this.open.set(socket, responses.add(response));
      // After an early answer, the rest of its request may still be arriving.
      const forget = () => {
        if (request.complete && response.closed) responses.delete(response);
      };
      request.once('close', forget);
      response.once('close', forget);
    });
    // Node handles `100-continue` itself; any other expectation may be ignored.
    server.on('checkExpectation', (...both) => server.emit('request', ...both));
  }

  /** @param count counts this answer against an address; takes little time even without Redis */
  async answer(
    fault: NodeJS.ErrnoException,
    socket: Socket,
    count: (ip: string) => Usage | Promise<Usage>,
  ): Promise<void> {
    // Whatever else arrives on this socket is ignored.
    if (this.answered.has(socket)) return;
    if (this.isSpokenFor(socket) || !socket.writable) {
      socket.destroy();
      return;
    }
    this.answered.add(socket);
    const usage = await this.usageOf(socket, count);
    // A late request may be complete by now; it is then answered as usual.
    if (this.isSpokenFor(socket)) this.answered.delete(socket);
    else if (socket.writable) socket.end(this.textOf(fault, usage));
    else socket.destroy();
  }

  private async usageOf(
    socket: Socket,
    count: (ip: string) => Usage | Promise<Usage>,
  ): Promise<Usage | undefined> {
    try {
      return await count(socket.remoteAddress ?? '');
    } catch (error) {
      this.log.warn(`answered without rate limit headers: ${getErrorMessage(error)}`);
      return undefined;
    }
  }

  private isSpokenFor(socket: Socket): boolean {
    const responses = [...(this.open.get(socket) ?? [])];
    return responses.some(({ req, headersSent }) => req.complete || headersSent);
  }

  private textOf(fault: NodeJS.ErrnoException, usage: Usage | undefined): string {
    const code = CODES[fault.code ?? ''] ?? NOT_HTTP;
    const requestId = createId();
    const answer = answerOf(code);
    const body = JSON.stringify(errorJson(answer, requestId, this.config.publicUrl));
    const { status } = answer;
    const headers = {
      'content-type': 'application/json; charset=utf-8',
      'content-length': Buffer.byteLength(body),
      'x-request-id': requestId,
      'cache-control': 'no-store',
      ...(usage && limitHeaders(usage)),
      ...retirementHeaders(this.config),
      connection: 'close',
    };
    const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
    return [`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...head, '', body].join('\r\n');
  }
}
