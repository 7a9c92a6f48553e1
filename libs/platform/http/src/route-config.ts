// From its own file: the dispatcher loads controllers too, and has no use for the server.
import { RouteConfig } from '@nestjs/platform-fastify/decorators/route-config.decorator.js';

const configs = new WeakMap<object, object>();

/** Adds to the config of a method's Fastify route; `RouteConfig` alone would replace that of another decorator. */
export function setRouteConfig(config: object): MethodDecorator {
  return (target, name, descriptor: PropertyDescriptor) => {
    const method = descriptor.value as object;
    const merged = { ...configs.get(method), ...config };
    configs.set(method, merged);
    RouteConfig(merged)(target, name, descriptor);
  };
}
