// From its own file: the dispatcher loads controllers too, and has no use for the server.
import type { FastifyRequest } from 'fastify';
import { RouteConfig } from '@nestjs/platform-fastify/decorators/route-config.decorator.js';

const configs = new WeakMap<object, object>();

/** Adds to the config of a method's Fastify route; `RouteConfig` alone would replace that of another decorator. */
export function setRouteConfig(config: object): MethodDecorator {
  return (target, name, descriptor: PropertyDescriptor) => {
    const method = descriptor.value as object;
    const routeConfig = { ...configs.get(method), ...config };
    configs.set(method, routeConfig);
    RouteConfig(routeConfig)(target, name, descriptor);
  };
}

/**
 * Returns the config of a request's route, with its pattern as `url`. Fastify creates all options of a route anew
 * whenever they are read: what every request needs of them is in its `RouteAccess`.
 */
export function getRouteConfig<C extends object>({
  routeOptions,
}: FastifyRequest): C & { url?: string } {
  return routeOptions.config as C;
}
