import type { FastifyInstance } from 'fastify';
import { isApiRoute } from './path.js';
import { setRouteConfig } from './route-config.js';

/** What anybody may send, since it is parsed before it is known who they are. */
export const ANONYMOUS_BODY_LIMIT = 16 * 1024;
/** Of operations of the API, which read no body without a valid token. */
const API_BODY_LIMIT = 1024 * 1024;
const PAYLOAD_TOO_LARGE = 413;

/** For methods: the longest body in bytes, where it is another than everywhere else. */
export function BodyLimit(bodyLimit: number): MethodDecorator {
  return setRouteConfig({ bodyLimit });
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
    else if (isApiRoute(route.url)) route.bodyLimit = API_BODY_LIMIT;
  });
  server.addHook('onSend', (_request, reply, payload, done) => {
    if (reply.statusCode === PAYLOAD_TOO_LARGE) reply.removeHeader('connection');
    done(null, payload);
  });
}
