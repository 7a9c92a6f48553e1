import type { FastifyInstance } from 'fastify';
import { routeConfig } from './route-config.js';

const PAYLOAD_TOO_LARGE = 413;

/** For methods: the longest body in bytes, where it is another than everywhere else. */
export function BodyLimit(bodyLimit: number): MethodDecorator {
  return routeConfig({ bodyLimit });
}

/**
 * Before any route is there: Nest passes on the config of a route, and Fastify reads the limit from the route.
 *
 * A body that is too long is read to its end, within the time that a request may take, and thrown away. Fastify would
 * close the connection, and a client that is still sending would be told of the reset instead of the 413.
 */
export function installBodyLimits(server: FastifyInstance): void {
  server.addHook('onRoute', (route) => {
    const { bodyLimit } = (route.config ?? {}) as { bodyLimit?: number };
    if (bodyLimit !== undefined) route.bodyLimit = bodyLimit;
  });
  server.addHook('onSend', (_request, reply, payload, done) => {
    if (reply.statusCode === PAYLOAD_TOO_LARGE) reply.removeHeader('connection');
    done(null, payload);
  });
}
