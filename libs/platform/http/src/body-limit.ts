import type { FastifyInstance } from 'fastify';
import { routeConfig } from './route-config.js';

/** For methods: the longest body in bytes, where it is another than everywhere else. */
export function BodyLimit(bodyLimit: number): MethodDecorator {
  return routeConfig({ bodyLimit });
}

/** Before any route is there: Nest passes on the config of a route, and Fastify reads the limit from the route. */
export function installBodyLimits(server: FastifyInstance): void {
  server.addHook('onRoute', (route) => {
    const { bodyLimit } = (route.config ?? {}) as { bodyLimit?: number };
    if (bodyLimit !== undefined) route.bodyLimit = bodyLimit;
  });
}
