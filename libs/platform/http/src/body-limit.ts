import type { FastifyInstance } from 'fastify';
import { isAdminRoute, isApiRoute } from './path.js';
import { setRouteConfig } from './route-config.js';

/** Maximum body of an anonymous request, which is parsed before the sender is known. */
export const ANONYMOUS_BODY_LIMIT = 16 * 1024;
/** Maximum body in the API, which reads none without a valid token. */
export const API_BODY_LIMIT = 1024 * 1024;
const PAYLOAD_TOO_LARGE = 413;

/** Sets the maximum body of a method in bytes, where it differs from the default. */
export function BodyLimit(bodyLimit: number): MethodDecorator {
  return setRouteConfig({ bodyLimit });
}

/**
 * Sets the body limits of routes. Call it before routes are added: Nest passes on the config of a route, and Fastify
 * reads the limit from the route.
 * A body that is too long is read to its end, within the time that a request may take, and discarded. Fastify would
 * close the connection, and a client that is still sending would see the reset instead of the 413.
 */
export function installBodyLimits(server: FastifyInstance): void {
  server.addHook('onRoute', (route) => {
    const { bodyLimit } = (route.config ?? {}) as { bodyLimit?: number };
    if (bodyLimit !== undefined) route.bodyLimit = bodyLimit;
    else if (isApiRoute(route.url) || isAdminRoute(route.url)) route.bodyLimit = API_BODY_LIMIT;
  });
  server.addHook('onSend', (_request, reply, payload, done) => {
    if (reply.statusCode === PAYLOAD_TOO_LARGE) reply.removeHeader('connection');
    done(null, payload);
  });
}
