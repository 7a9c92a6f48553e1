import { Logger } from '@nestjs/common';
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Awaitable } from '#platform/kernel/awaitable.js';
import type { PlatformConfig } from '#platform/kernel/platform-config.js';
import { CatalogueError, getErrorMessage } from '#platform/kernel/errors.js';
import { createId } from '#platform/kernel/randomness.js';
import { createErrorResponse, toErrorJson } from './error-response.js';
import type { OpenRequests } from './open-requests.js';
import { renderLimitHeaders, type Usage } from './rate-limit.js';
import { renderRetirementHeaders } from './versioning.js';

const NOT_HTTP = 'malformed_request';
/** Time for a client to read the last response on its connection. */
const LINGER_MS = 2_000;
const CODES: Record<string, 'header_fields_too_large' | 'request_timeout'> = {
  HPE_HEADER_OVERFLOW: 'header_fields_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
};

/**
 * Responds to errors that Node finds before there is a request, time-outs included. A client takes the next bytes on
 * its connection as the response to its oldest request. So nothing is sent while a complete request waits for its
 * response: it may be committed, and clients retry after a 408 (ERR-21).
 */
export class ClientErrors {
  private readonly log = new Logger('Errors');
  private readonly respondedSockets = new WeakSet<Socket>();

  constructor(
    private readonly open: OpenRequests,
    private readonly config: PlatformConfig,
  ) {}

  /**
   * Sends the error response, or closes the connection.
   * @param count counts the response against an address; fast even without Redis
   */
  async respond(
    error: NodeJS.ErrnoException,
    socket: Socket,
    count: (ip: string) => Awaitable<Usage>,
  ): Promise<void> {
    // Whatever else arrives on this socket is ignored.
    if (this.respondedSockets.has(socket)) return;
    if (this.open.isAwaited(socket) || !socket.writable) {
      socket.destroy();
      return;
    }
    this.respondedSockets.add(socket);
    const usage = await this.countUsage(socket, count);
    // A late request that is complete meanwhile gets its usual response.
    if (this.open.isAwaited(socket)) this.respondedSockets.delete(socket);
    else if (socket.writable) {
      socket.end(this.renderResponse(error, usage));
      // A client that keeps its side open would keep the request, and what is reserved for its body.
      const timer = setTimeout(() => socket.destroy(), LINGER_MS).unref();
      socket.once('close', () => clearTimeout(timer));
    } else socket.destroy();
  }

  private async countUsage(
    socket: Socket,
    count: (ip: string) => Awaitable<Usage>,
  ): Promise<Usage | undefined> {
    try {
      return await count(socket.remoteAddress ?? '');
    } catch (error) {
      this.log.warn(`responded without rate limit headers: ${getErrorMessage(error)}`);
      return undefined;
    }
  }

  private renderResponse(error: NodeJS.ErrnoException, usage: Usage | undefined): string {
    const code = CODES[error.code ?? ''] ?? NOT_HTTP;
    const requestId = createId();
    const response = createErrorResponse(new CatalogueError(code));
    const body = JSON.stringify(toErrorJson(response, requestId, this.config.publicUrl));
    const { status } = response;
    const headers = {
      'content-type': 'application/json; charset=utf-8',
      'content-length': Buffer.byteLength(body),
      'x-request-id': requestId,
      'cache-control': 'no-store',
      ...(usage && renderLimitHeaders(usage)),
      ...renderRetirementHeaders(this.config),
      connection: 'close',
    };
    const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
    return [`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...head, '', body].join('\r\n');
  }
}
