import type { FastifyRequest } from 'fastify';
import { getRouteConfig, setRouteConfig } from './route-config.js';

/** @property ttl how long a window is, in milliseconds */
export type RouteLimit = { limit: number; ttl: number };

type RouteThrottle = { throttle?: RouteLimit | false };

/**
 * Limits the requests to a method in a window, by default of a minute. Sets the config of Fastify's route, because the
 * request guard runs before Nest knows the handler, whose metadata the decorator of @nestjs/throttler sets.
 */
export function Throttle(limit: number, ttl = 60_000): MethodDecorator {
  return setRouteConfig({ throttle: { limit, ttl } });
}

/** Exempts a method from rate limits. Use it only outside the API: there every response carries the limit headers. */
export function SkipThrottle(): MethodDecorator {
  return setRouteConfig({ throttle: false });
}

/**
 * Returns the limit of a route.
 * @returns undefined where the route sets nothing, false where it is not counted
 */
export function getThrottle(request: FastifyRequest): RouteLimit | false | undefined {
  return getRouteConfig<RouteThrottle>(request).throttle;
}
