import type { FastifyInstance, FastifyReply } from 'fastify';
import type { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { UnknownOutcomeError } from '#platform/kernel/errors.js';
import type { PlatformConfig } from '#platform/kernel/platform-config.js';
import { DatabaseWait, runWithWait } from '#platform/database/database-waits.js';
import { SAFE_METHODS, type AuthenticatedRequest } from './caller.js';
import { readClientAddress } from './client-address.js';
import type { ErrorsFilter } from './errors.filter.js';
import { createHeaders } from './headers.js';
import type { HttpMetrics } from './http-metrics.js';
import { getNetworkKey } from './rate-limit.js';
import { getRouteAccess } from './route-access.js';

/** A little less than the 30 s of ERR-21, because requests are checked at intervals. */
const OUTCOME_TIMEOUT_MS = 29_000;
const CHECK_INTERVAL_MS = 500;
/** A request that takes longer until its handler runs was sent slowly. */
const SLOW_UPLOAD_MS = 8_000;

/**
 * @property sentBefore bytes sent on the connection before, heads included; undefined for a request from within the process
 * @property dueAt when a write has to have its outcome
 */
export type OpenRequest = AuthenticatedRequest & {
  startedAt?: number;
  wait?: DatabaseWait;
  sentBefore?: number | undefined;
  dueAt?: number;
};

type Parts = { metrics: HttpMetrics; errors: ErrorsFilter };

/**
 * Follows every request until its response is sent, with one hook and one listener: its id, the headers of every
 * response, its part in metrics, and how it uses the database, which requests share (ADR-0134).
 */
export class OpenRequests {
  private readonly replies = new Set<FastifyReply>();
  /**
   * The last request of a connection whose response was sent before its body arrived. Goes with the connection: Node.js
   * emits nothing on such a request when the connection breaks.
   */
  private readonly arriving = new WeakMap<Socket, IncomingMessage>();

  /** Adds the hooks. Call it before others are added, so that their rejections are measured too. */
  install(server: FastifyInstance, config: PlatformConfig, parts: Parts): void {
    const { metrics } = parts;
    const headers = createHeaders(config);
    server.addHook('onRequest', (plain, reply, done) => {
      const request = plain as OpenRequest;
      const startedAt = (request.startedAt = performance.now());
      const { area, pattern } = getRouteAccess(request);
      const { ip } = request;
      request.requestId = request.id;
      // Read now: a connection that has been closed has no address any more.
      const ipAddress = readClientAddress(ip);
      if (ipAddress !== undefined) request.ipAddress = ipAddress;
      request.sentBefore = request.raw.socket.bytesWritten;
      reply.headers(headers[area]);
      reply.header('x-request-id', request.id);
      this.replies.add(reply);
      metrics.inFlightCount++;
      // Emitted exactly once, also when the connection broke; Fastify's onResponse may then never run.
      reply.raw.on('close', () => {
        metrics.inFlightCount--;
        const status = reply.raw.writableFinished
          ? `${Math.floor(reply.statusCode / 100)}xx`
          : 'none';
        const seconds = (performance.now() - startedAt) / 1000;
        metrics.seconds.observe({ method: request.method, route: pattern, status }, seconds);
        this.replies.delete(reply);
        const { complete, socket } = request.raw;
        // A request from within the process has no connection.
        if (!complete && socket instanceof Socket) this.arriving.set(socket, request.raw);
      });
      request.wait = new DatabaseWait(
        undefined,
        () => reply.raw.closed,
        // Until the guards know a better owner: strangers together get no more than one account.
        () => `network ${getNetworkKey(ip)}`,
        () => reply.raw.writableFinished,
      );
      runWithWait(request.wait, done);
    });
    server.addHook('preValidation', (plain, _reply, done) => {
      const request = plain as OpenRequest;
      if (!SAFE_METHODS.has(request.method)) {
        const now = performance.now();
        const { startedAt = now } = request;
        // The time in which a large body arrives does not count.
        const isSlow = now - startedAt > SLOW_UPLOAD_MS;
        request.dueAt = (isSlow ? now : startedAt) + OUTCOME_TIMEOUT_MS;
      }
      // Again, since the body is parsed in the context of its connection.
      runWithWait(request.wait, done);
    });
    const timer = setInterval(() => {
      this.closeForgotten();
      this.endOverdue(parts);
    }, CHECK_INTERVAL_MS).unref();
    server.addHook('onClose', (_server, done) => {
      clearInterval(timer);
      done();
    });
  }

  /**
   * Tells whether a response is under way on a connection, or was sent before all of its request arrived: a client would
   * take what is sent now as the response to its oldest request.
   */
  isAwaited(socket: Socket): boolean {
    if (this.arriving.get(socket)?.complete === false) return true;
    for (const { raw, request } of this.replies) {
      if (request.raw.socket === socket && (request.raw.complete || raw.headersSent)) return true;
    }
    return false;
  }

  /**
   * Closes the responses that Node.js 20 leaves open when a connection breaks: those that waited for an earlier one on it.
   * Later versions do the same by themselves.
   */
  private closeForgotten(): void {
    for (const { raw, request } of this.replies) {
      if (raw.socket !== null || !request.raw.socket.closed) continue;
      Object.assign(raw, { destroyed: true, _closed: true });
      raw.emit('close');
    }
  }

  /**
   * Closes the connection of writes whose outcome is unknown 30 s after their request (ERR-21), however many steps have
   * waited one after another.
   */
  private endOverdue({ errors }: Parts): void {
    const now = performance.now();
    for (const reply of this.replies) {
      const request = reply.request as OpenRequest;
      if (!request.dueAt || now < request.dueAt || reply.sent || reply.raw.headersSent) continue;
      request.dueAt = Infinity;
      errors.respond(
        new UnknownOutcomeError('the outcome is not known after 30 s'),
        request,
        reply,
      );
    }
  }
}
