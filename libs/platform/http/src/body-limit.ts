import type { FastifyInstance } from 'fastify';
import { isAdminRoute, isApiRoute } from './path.js';
import { setRouteConfig } from './route-config.js';

/** Maximum body of an anonymous request, which is parsed before the sender is known. */
export const ANONYMOUS_BODY_LIMIT = 16 * 1024;
/** Maximum body in the API, which reads none without a valid token. */
export const API_BODY_LIMIT = 1024 * 1024;

/** Sets the maximum body of a method in bytes, where it differs from the default. */
export function BodyLimit(bodyLimit: number): MethodDecorator {
  return setRouteConfig({ bodyLimit });
}

/**
 * Sets the body limits of routes. Call it before routes are added: Nest passes on the config of a route, and Fastify
 * reads the limit from the route.
 */
export function installBodyLimits(server: FastifyInstance): void {
  server.addHook('onRoute', (route) => {
    const { bodyLimit } = (route.config ?? {}) as { bodyLimit?: number };
    if (bodyLimit !== undefined) route.bodyLimit = bodyLimit;
    else if (isApiRoute(route.url) || isAdminRoute(route.url)) route.bodyLimit = API_BODY_LIMIT;
  });
}
