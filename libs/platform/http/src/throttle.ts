import type { FastifyRequest } from 'fastify';
import { getRouteConfig, setRouteConfig } from './route-config.js';

/** @property ttl how long a window is, in milliseconds */
export type RouteLimit = { limit: number; ttl: number };

type RouteThrottle = { throttle?: RouteLimit | false };

/**
 * Limits a method, with the signature of @nestjs/throttler's decorator. Sets the config of Fastify's route, because the
 * request guard runs before Nest knows the handler, whose metadata the throttler's decorator would set.
 */
export function Throttle(limits: { default: RouteLimit }): MethodDecorator {
  return setRouteConfig({ throttle: limits.default });
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
