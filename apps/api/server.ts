import { isUtf8 } from 'node:buffer';
import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';
import type { DynamicModule } from '@nestjs/common';
import { ModuleRef, NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { getStorageToken } from '@nestjs/throttler';
import {
  errorCodes,
  type FastifyHttpOptions,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
} from 'fastify';
import type { Config } from '#configuration/config.js';
import { Log } from '#platform/kernel/log.js';
import { createId } from '#platform/kernel/randomness.js';
import { AccountOwners } from '#platform/event-store/commands/account-owners.service.js';
import { Maintenance } from '#platform/database/maintenance.service.js';
import { logAccess } from '#platform/http/access-log.js';
import { installBodyParsers } from '#platform/http/body-parsers.js';
import { Authenticator, type AuthenticatedRequest } from '#platform/http/caller.js';
import { ClientErrors } from '#platform/http/client-errors.js';
import { readInput, AccountTimeZones } from '#platform/http/input.js';
import { AdminGuard } from '#web/admin-api/admin-guard.service.js';
import { serveDocs } from '#web/docs/docs-pages.js';
import { ErrorsFilter } from '#platform/http/errors.filter.js';
import { RequestGuard } from '#platform/http/request-guard.js';
import { Idempotency } from '#platform/http/idempotency.js';
import { installEncodings } from '#platform/http/headers.js';
import { OpenRequests } from '#platform/http/open-requests.js';
import { HttpMetrics } from '#platform/http/http-metrics.js';
import { reserveLargeBodies } from '#platform/http/large-bodies.js';
import { AppleCertificate } from '#outbound/apple-wallet/apple-certificate.service.js';
import { toDecodableTarget } from '#platform/http/path.js';
import { RateLimits } from '#platform/http/rate-limit.js';
import { requireRecord } from '#platform/http/record.js';
import {
  ANONYMOUS_BODY_LIMIT,
  installBodyChecks,
  installBodyLimits,
} from '#platform/http/request-bodies.js';
import type { Counts } from '#platform/http/throttler-storage.js';
import { ConsoleGuard } from '#web/pages/console-guard.service.js';
import { FormCommands } from '#web/pages/form-commands.service.js';
import { installPageResults } from '#web/pages/page-results.js';
import { HtmlErrorPages } from '#web/pages/error-pages.js';
import { Readiness } from '#platform/operations/readiness.js';
import { traceRequests } from '#platform/http/request-traces.js';
import { McpEndpoint } from '#web/mcp/mcp-endpoint.service.js';
import { customerRequests } from '#loyalty/stamping/customer-subjects.js';

/** How long a client may take to send a request: first its header, then all of it. */
const HEADER_WITHIN_MS = 15_000;
const REQUEST_WITHIN_MS = 60_000;
const TIMEOUTS_LOOKED_AT_EVERY_MS = 5_000;
const IDLE_EVERY_MS = 100;

/** The api as it runs: one hook admits callers, one filter words every error. */
export async function createServer(
  module: DynamicModule,
  config: Config,
): Promise<NestFastifyApplication> {
  const errors = new ErrorsFilter(config, new HtmlErrorPages(config), (request) =>
    requireRecord(request, app.get(ModuleRef)),
  );
  const openRequests = new OpenRequests();
  const clientErrors = new ClientErrors(openRequests, config);
  // The storage belongs to the module, which is created after the adapter; nobody can connect before that.
  const countRequests = (ip: string) =>
    new RateLimits(app.get(getStorageToken(), { strict: false }), config).countAddress(ip);
  const adapter = new FastifyAdapter({
    ...serverOptions(config),
    frameworkErrors: (error: Error, request: FastifyRequest, reply: FastifyReply) => {
      Object.assign(request, { requestId: request.id });
      errors.respond(error, request as unknown as AuthenticatedRequest, reply);
    },
    clientErrorHandler: (error, socket) => void clientErrors.respond(error, socket, countRequests),
  });
  const app = await NestFactory.create<NestFastifyApplication>(module, adapter, {
    bodyParser: false,
    logger: new Log(config, 'api'),
    abortOnError: false,
  });
  app.useGlobalFilters(errors);

  const server = adapter.getInstance();
  // Node handles `100-continue` itself; any other expectation may be ignored.
  server.server.on('checkExpectation', (...both) => server.server.emit('request', ...both));
  const metrics = app.get(HttpMetrics);
  openRequests.install(server, config, { metrics, errors });
  await installHooks(app, server, config, errors);
  installBodyChecks(server);
  reserveLargeBodies(server);
  readBodies(server);
  installBodyParsers(server);
  serveDocs(server, config);
  app.get(McpEndpoint, { strict: false }).install(server);
  closeIdleConnections(server);
  await app.init();
  await server.ready();
  return app;
}

function serverOptions(config: Config): FastifyHttpOptions<Server> {
  return {
    bodyLimit: ANONYMOUS_BODY_LIMIT,
    requestTimeout: REQUEST_WITHIN_MS,
    http: {
      headersTimeout: HEADER_WITHIN_MS,
      connectionsCheckingInterval: TIMEOUTS_LOOKED_AT_EVERY_MS,
      // Node's own response has no body: the request guard checks the header.
      requireHostHeader: false,
    },
    trustProxy: (_address: string, hop: number) => hop < config.trustProxyHops,
    // Longer than any header can be, so that an overlong id gets the response of a record that does not exist (404).
    routerOptions: { maxParamLength: 64 * 1024, ignoreTrailingSlash: true },
    rewriteUrl: ({ url = '/' }) => (url.includes('%') ? toDecodableTarget(url) : url),
    genReqId: readRequestId,
    // Keys with these names are ignored like any other unknown key, not refused.
    onProtoPoisoning: 'remove',
    onConstructorPoisoning: 'remove',
    forceCloseConnections: 'idle',
    // Requests that still arrive on an open connection during a shutdown are served normally.
    return503OnClosing: false,
  };
}

/** Adds the hooks. Those of a phase run in this order, first the server's, then those of the route. */
async function installHooks(
  app: NestFastifyApplication,
  server: FastifyInstance,
  config: Config,
  errors: ErrorsFilter,
): Promise<void> {
  if (config.otlpEndpoint !== null) traceRequests(server);
  logAccess(server, config);
  // Nest sets its error handler after the route for CORS preflights is there, so that route would never have one.
  server.addHook('onRoute', (route) => {
    route.errorHandler ??= (error, request, reply) =>
      errors.respond(error, request as AuthenticatedRequest, reply);
  });
  installBodyLimits(server);
  // Must be added before compression, because it stores the uncompressed body.
  app.get(Idempotency, { strict: false }).install(server, customerRequests);
  // Before the request guard, whose 429 of a batch names unknown fields too (CONV-43).
  readInput(server, app.get(AccountTimeZones, { strict: false }), app.get(ModuleRef));
  await installEncodings(server, config);
  const storage = app.get<Counts>(getStorageToken(), { strict: false });
  if (storage.areShared !== undefined) {
    app.get(Readiness).addOptionalPart('redis', () => storage.areShared === true);
  }
  app.get(AppleCertificate, { strict: false }).addToReadiness(app.get(Readiness));
  const parts = {
    counts: storage,
    authenticator: app.get(Authenticator, { strict: false }),
    adminGuard: app.get(AdminGuard, { strict: false }),
    maintenance: app.get(Maintenance, { strict: false }),
    metrics: app.get(HttpMetrics),
    owners: app.get(AccountOwners, { strict: false }),
  };
  new RequestGuard(parts, config).install(server);
  app.get(ConsoleGuard, { strict: false }).install(server);
  app.get(FormCommands, { strict: false }).install(server, customerRequests);
  installPageResults(server, config);
}

/** JSON, and pictures, text files or forms where a route takes them; an empty body counts as none. */
function readBodies(server: FastifyInstance): void {
  server.removeContentTypeParser(['text/plain', 'application/json']);
  const parse = server.getDefaultJsonParser('remove', 'remove');
  server.addContentTypeParser(
    'application/json',
    // Decoded by Fastify, what is no UTF-8 would be stored as question marks.
    { parseAs: 'buffer' },
    (request: FastifyRequest, bytes: Buffer, done) => {
      if (!isUtf8(bytes)) return done(new errorCodes.FST_ERR_CTP_INVALID_JSON_BODY());
      const body = bytes.toString();
      if (body.trim() === '') done(null, undefined);
      else parse(request, body, done);
    },
  );
}

/**
 * Closes connections during a shutdown once nothing is under way on them. Fastify does so only once, so one that was busy
 * then would be kept alive for another minute; and Node.js takes one on which nothing was ever sent for busy. Browsers
 * and proxies open such connections in advance.
 */
function closeIdleConnections(server: FastifyInstance): void {
  const sockets = new Set<Socket>();
  server.server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.addHook('preClose', async () => {
    const timer = setInterval(() => {
      server.server.closeIdleConnections();
      for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy();
    }, IDLE_EVERY_MS);
    server.server.once('close', () => clearInterval(timer));
  });
}

/** The caller's own id where it is safe to appear in logs and events, otherwise a new one. */
function readRequestId({ headers }: IncomingMessage): string {
  const header = headers['x-request-id'];
  return typeof header === 'string' && /^[A-Za-z0-9._-]{1,128}$/.test(header) ? header : createId();
}
