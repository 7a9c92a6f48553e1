import { setRouteConfig } from './route-config.js';

/** @property ttl how long a window is, in milliseconds */
export type RouteLimit = { limit: number; ttl: number };

/** Elements of a list that count as one request. */
const ELEMENTS_PER_HIT = 10;

type CountWork = (body: unknown) => number;
export type RouteThrottle = { throttle?: RouteLimit | false; countWork?: CountWork };

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
 * Lets a request with a list count as one for every ten of its elements, rounded up (BATCH-09).
 * @param list the field of the body
 * @param max of its elements; a longer list is refused without any work
 */
export function CountsElements(list: string, max: number): MethodDecorator {
  const countWork: CountWork = (body) => {
    const elements = (body as Record<string, unknown> | null | undefined)?.[list];
    if (!Array.isArray(elements) || elements.length > max) return 1;
    return Math.max(1, Math.ceil(elements.length / ELEMENTS_PER_HIT));
  };
  return setRouteConfig({ countWork });
}
