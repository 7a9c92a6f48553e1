import type { DynamicModule } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Config } from '#kernel/config.js';
import { Log } from '#kernel/log.js';
import { Authenticator, type GatedRequest } from './caller.js';
import { ErrorsFilter } from './errors.filter.js';
import { installGate } from './gate.js';
import { openApiDocument, serveDocs } from './openapi.js';

const BODY_LIMIT = 1024 * 1024;
const IDLE_EVERY_MS = 100;

/** The api as it runs: one hook that lets callers in, one filter that words every failure. */
export async function createServer(
  module: DynamicModule,
  config: Config,
): Promise<NestFastifyApplication> {
  const adapter = new FastifyAdapter({
    bodyLimit: BODY_LIMIT,
    trustProxy: (_address: string, hop: number) => hop < config.trustProxyHops,
    routerOptions: { maxParamLength: 200, ignoreTrailingSlash: true },
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
    clientErrorHandler: (_error, socket) => {
      const body = JSON.stringify({
        error: 'This is not an HTTP request',
        code: 'malformed_request',
      });
      if (!socket.writable) return;
      socket.end(
        `HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`,
      );
    },
  });
  const errors = new ErrorsFilter(config);
  const app = await NestFactory.create<NestFastifyApplication>(module, adapter, {
    bodyParser: false,
    logger: new Log(config.logLevel),
    abortOnError: false,
  });
  app.useGlobalFilters(errors);
  app.enableShutdownHooks(['SIGTERM', 'SIGINT']);

  const server = adapter.getInstance();
  installGate(server, app.get(Authenticator, { strict: false }), config);
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
  serveDocs(server, openApiDocument(app, config));
  // Closing ends idle connections once; one that was busy then would be kept alive for a minute more.
  server.addHook('preClose', async () => {
    const timer = setInterval(() => server.server.closeIdleConnections(), IDLE_EVERY_MS);
    server.server.once('close', () => clearInterval(timer));
  });
  await app.init();
  await server.ready();
  return app;
}
