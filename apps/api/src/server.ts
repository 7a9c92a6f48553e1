import type { IncomingMessage } from 'node:http';
import type { DynamicModule } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { CommandBus } from '@nestjs/cqrs';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Config } from '#kernel/config.js';
import { Log } from '#kernel/log.js';
import { newId } from '#kernel/randomness.js';
import { logAccess } from '#http/access-log.js';
import { Authenticator, type GatedRequest } from '#http/caller.js';
import { ClientErrors } from '#http/client-errors.js';
import { serveDocsPages } from '#openapi/docs-pages.js';
import { ErrorsFilter } from '#http/errors.filter.js';
import { installGate } from '#http/gate.js';
import { installHeaders } from '#http/headers.js';
import { HttpMetrics } from '#http/http-metrics.js';
import { answerMethods } from '#http/methods.js';
import { openApiDocument, serveDocs } from '#openapi/openapi.js';
import { decodable } from '#http/path.js';
import { openCounts, SharedCounts } from '#http/rate-limit.js';
import { Readiness } from '#operations/readiness.js';
import { traceRequests } from '#http/request-traces.js';

const BODY_LIMIT = 1024 * 1024;
/** Within these a request must have arrived, first its header, then all of it. */
const HEADER_WITHIN_MS = 15_000;
const REQUEST_WITHIN_MS = 60_000;
const TIMEOUTS_LOOKED_AT_EVERY_MS = 5_000;
const IDLE_EVERY_MS = 100;

/** The api as it runs: one hook that lets callers in, one filter that words every failure. */
export async function createServer(
  module: DynamicModule,
  config: Config,
): Promise<NestFastifyApplication> {
  const clientErrors = new ClientErrors();
  const adapter = new FastifyAdapter({
    bodyLimit: BODY_LIMIT,
    requestTimeout: REQUEST_WITHIN_MS,
    http: {
      headersTimeout: HEADER_WITHIN_MS,
      connectionsCheckingInterval: TIMEOUTS_LOOKED_AT_EVERY_MS,
    },
    trustProxy: (_address: string, hop: number) => hop < config.trustProxyHops,
    // Longer than any header: a long id is answered as what it is, a record that does not exist.
    routerOptions: { maxParamLength: 64 * 1024, ignoreTrailingSlash: true },
    rewriteUrl: ({ url = '/' }) => decodable(url),
    genReqId: ({ headers }: IncomingMessage) => requestIdOf(headers['x-request-id']),
    // Keys with these names are ignored like any other unknown key, not refused.
    onProtoPoisoning: 'remove',
    onConstructorPoisoning: 'remove',
    forceCloseConnections: 'idle',
    // What still comes in on an open connection while closing is answered like anything else.
    return503OnClosing: false,
    frameworkErrors: (error: Error, request: FastifyRequest, reply: FastifyReply) => {
      Object.assign(request, { requestId: request.id });
      errors.answer(error, request as unknown as GatedRequest, reply);
    },
    clientErrorHandler: (error, socket) =>
      clientErrors.answer(error, socket, `${config.publicUrl}/docs`),
  });
  const errors = new ErrorsFilter(config);
  const app = await NestFactory.create<NestFastifyApplication>(module, adapter, {
    bodyParser: false,
    logger: new Log(config, 'api'),
    abortOnError: false,
  });
  app.useGlobalFilters(errors);
  app.enableShutdownHooks(['SIGTERM', 'SIGINT']);

  const server = adapter.getInstance();
  clientErrors.watch(server.server);
  const metrics = app.get(HttpMetrics);
  metrics.watch(server);
  if (config.otlpEndpoint !== null) traceRequests(server, app.get(CommandBus, { strict: false }));
  identifyRequests(server);
  logAccess(server);
  // The route for preflights comes before Nest's error handler does, and would never get it.
  server.addHook('onRoute', (route) => {
    route.errorHandler ??= (error, request, reply) =>
      errors.answer(error, request as GatedRequest, reply);
  });
  await installHeaders(server, config);
  const counts = await openCounts(config);
  server.addHook('onClose', async () => counts.close());
  if (counts instanceof SharedCounts) {
    app.get(Readiness).doesWithout('redis', () => counts.areShared);
  }
  installGate(server, app.get(Authenticator, { strict: false }), counts, config, metrics);
  answerMethods(server);
  server.removeContentTypeParser(['text/plain', 'application/json']);
  const parse = server.getDefaultJsonParser('remove', 'remove');
  server.addContentTypeParser(
    'application/json',
    { parseAs: 'string' },
    (request: FastifyRequest, body: string, done) => {
      if (body.trim() === '') done(null, undefined);
      else parse(request, body, done);
    },
  );
  serveDocs(server, openApiDocument(app, config.publicUrl));
  serveDocsPages(server, config);
  // Closing ends idle connections once; one that was busy then would be kept alive for a minute more.
  server.addHook('preClose', async () => {
    const timer = setInterval(() => server.server.closeIdleConnections(), IDLE_EVERY_MS);
    server.server.once('close', () => clearInterval(timer));
  });
  await app.init();
  await server.ready();
  return app;
}

/** Before all other hooks: whatever they answer carries it. */
function identifyRequests(server: FastifyInstance): void {
  server.addHook('onRequest', async (request, reply) => {
    Object.assign(request, { requestId: request.id });
    reply.header('x-request-id', request.id);
  });
}

/** The caller's own when it is fit to stand in logs and events. */
function requestIdOf(given: string | string[] | undefined): string {
  return typeof given === 'string' && /^[A-Za-z0-9._-]{1,128}$/.test(given) ? given : newId();
}
